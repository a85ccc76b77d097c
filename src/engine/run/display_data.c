/* display_data.c - known fields of the right type, everything else is left out. */
#include "engine/run/display_data.h"

#include "base/table.h"
#include "json/writer.h"

#include <ctype.h>
#include <string.h>

enum { TYPES_MOST = 64, TYPE_LENGTH_MOST = 127, ID_LENGTH_MOST = 255 };

enum value_field { DATA, CHART, METADATA, ID, UPDATE };
enum failure_field { NAME };

static const struct field {
    const char *name;
    char begins;           /* what the right type begins with */
    const char *otherwise; /* what stands there if the program gave none; NULL: nothing */
} value_fields[] = {
    /* clang-format off */
    [DATA]     = { "data",     '{', NULL },
    [CHART]    = { "chart",    '{', NULL },
    [METADATA] = { "metadata", '{', NULL },
    [ID]       = { "id",       '"', NULL },
    [UPDATE]   = { "update",   't', NULL }, /* false is the same as none */
    /* clang-format on */
}, failure_fields[] = {
    /* clang-format off */
    [NAME] = { "name",       '"', "\"\"" },
             { "value",      '"', "\"\"" },
             { "traceback",  '"', "\"\"" },
             { "frames",     '[', "[]" },
             { "causes",     '[', NULL }, /* __cause__ or __context__, the nearest first */
             { "exceptions", '[', NULL }, /* of a group */
    /* clang-format on */
};

_Static_assert(COUNT_OF(failure_fields) <= SHOWN_FIELDS_MOST &&
                   COUNT_OF(value_fields) <= SHOWN_FIELDS_MOST,
               "every field has its place");

static const struct field *fields_of(const struct shown *shown, size_t *ret_count)
{
    *ret_count = shown->is_failure ? COUNT_OF(failure_fields) : COUNT_OF(value_fields);
    return shown->is_failure ? failure_fields : value_fields;
}

/* type/subtype, of the characters that RFC 6838 allows. */
static bool is_mime_type(const char *name, size_t length)
{
    const char *slash = memchr(name, '/', length);
    if (length > TYPE_LENGTH_MOST || !slash || slash == name || slash + 1 == name + length ||
        memchr(slash + 1, '/', length - (size_t) (slash + 1 - name)))
        return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] == '\0' ||
            (!isalnum((unsigned char) name[i]) && !strchr("!#$&-^_.+/", name[i])))
            return false;
    return true;
}

/* The field that came in ends where the next one begins. */
static void end_field(struct shown *shown, size_t at)
{
    if (shown->open >= 0)
        shown->fields[shown->open].end = at;
    shown->open = -1;
}

static bool wants(void *user, unsigned depth, const char *name, size_t size, size_t at)
{
    struct shown *shown = user;
    if (depth == 2)
        return shown->is_failure || shown->open != DATA ||
               (is_mime_type(name, size) && ++shown->types <= TYPES_MOST);
    size_t count;
    const struct field *fields = fields_of(shown, &count);
    end_field(shown, at);
    for (size_t i = 0; i < count && shown->open < 0; i++)
        if (strlen(fields[i].name) == size && memcmp(fields[i].name, name, size) == 0)
            shown->open = (int) i;
    if (shown->open < 0)
        return false;
    shown->fields[shown->open].at = at;
    return true;
}

void shown_begin(struct shown *shown, bool is_failure)
{
    *shown = (struct shown){ .is_failure = is_failure, .open = -1 };
    json_copy_init(&shown->copy, wants, shown);
}

void shown_take(struct shown *shown, const char *data, size_t size)
{
    json_copy_take(&shown->copy, data, size);
}

void shown_done(struct shown *shown)
{
    json_copy_done(&shown->copy);
    *shown = (struct shown){ 0 };
}

/* Finds what is there and of the right type. */
static bool look(struct shown *shown)
{
    size_t count;
    const struct field *fields = fields_of(shown, &count);
    if (!json_copy_is_whole(&shown->copy))
        return false;
    end_field(shown, shown->copy.text.size);
    for (size_t i = 0; i < count; i++) {
        struct shown_span *span = &shown->fields[i];
        span->is_there =
            span->end > span->at && shown->copy.text.data[span->at] == fields[i].begins;
    }
    return true;
}

static void write_value(const struct shown *shown, struct bytes *out, const char *key,
                        const struct shown_span *span)
{
    json_key(out, key);
    json_raw(out, shown->copy.text.data + span->at, span->end - span->at);
}

static size_t length_of(const struct shown_span *span)
{
    return span->end - span->at - 2; /* without quotes or brackets */
}

bool shown_write(struct shown *shown, struct bytes *out, bool is_main)
{
    const struct shown_span *fields = shown->fields;
    if (!look(shown) || !fields[DATA].is_there)
        return false;
    bytes_add(out, "{", 1);
    json_flag_field(out, "main", is_main);
    write_value(shown, out, "data", &fields[DATA]);
    if (fields[CHART].is_there)
        write_value(shown, out, "chart", &fields[CHART]);
    else
        json_null_field(out, "chart");
    if (fields[METADATA].is_there && length_of(&fields[METADATA]) > 0)
        write_value(shown, out, "metadata", &fields[METADATA]);
    if (fields[ID].is_there && length_of(&fields[ID]) <= ID_LENGTH_MOST) {
        write_value(shown, out, "id", &fields[ID]);
        json_flag_field(out, "update", fields[UPDATE].is_there);
    }
    json_close(out, '}');
    return true;
}

bool shown_write_failure(struct shown *shown, struct bytes *out)
{
    if (!look(shown) || !shown->fields[NAME].is_there)
        return false;
    bytes_add(out, "{", 1);
    for (size_t i = 0; i < COUNT_OF(failure_fields); i++) {
        const struct field *field = &failure_fields[i];
        if (shown->fields[i].is_there) {
            write_value(shown, out, field->name, &shown->fields[i]);
        } else if (field->otherwise) {
            json_key(out, field->name);
            json_raw(out, field->otherwise, strlen(field->otherwise));
        }
    }
    json_close(out, '}');
    return true;
}
