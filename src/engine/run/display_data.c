/* display_data.c - keeps known fields of the right type, and drops everything else. */
#include "engine/run/display_data.h"

#include "base/table.h"
#include "json/writer.h"

#include <ctype.h>
#include <string.h>

enum { TYPES_MAX = 64, TYPE_LENGTH_MAX = 127, ID_LENGTH_MAX = 255 };

enum value_field { DATA, CHART, METADATA, ID, UPDATE };
enum failure_field { NAME };

static const struct field {
    const char *name;
    char begins;           /* the first character of the right type */
    const char *otherwise; /* the default; NULL: left out */
} value_fields[] = {
    [DATA]     = { "data",     '{', NULL },
    [CHART]    = { "chart",    '{', NULL },
    [METADATA] = { "metadata", '{', NULL },
    [ID]       = { "id",       '"', NULL },
    [UPDATE]   = { "update",   't', NULL }, /* only true is kept */
}, failure_fields[] = {
    [NAME] = { "name",       '"', "\"\"" },
             { "value",      '"', "\"\"" },
             { "traceback",  '"', "\"\"" },
             { "frames",     '[', "[]" },
             { "causes",     '[', NULL }, /* __cause__ or __context__, the nearest first */
             { "exceptions", '[', NULL }, /* of a group */
};

_Static_assert(COUNT_OF(failure_fields) <= DISPLAY_DATA_FIELDS_MAX &&
                   COUNT_OF(value_fields) <= DISPLAY_DATA_FIELDS_MAX,
               "every field has its place");

static const struct field *fields_of(const struct display_data *display_data, size_t *ret_count)
{
    *ret_count = display_data->is_failure ? COUNT_OF(failure_fields) : COUNT_OF(value_fields);
    return display_data->is_failure ? failure_fields : value_fields;
}

/* type/subtype, with the characters that RFC 6838 allows. */
static bool is_mime_type(const char *name, size_t length)
{
    const char *slash = memchr(name, '/', length);
    if (length > TYPE_LENGTH_MAX || !slash || slash == name || slash + 1 == name + length ||
        memchr(slash + 1, '/', length - (size_t) (slash + 1 - name)))
        return false;
    for (size_t i = 0; i < length; i++)
        if (name[i] == '\0' ||
            (!isalnum((unsigned char) name[i]) && !strchr("!#$&-^_.+/", name[i])))
            return false;
    return true;
}

/* A field ends where the next one begins. */
static void end_field(struct display_data *display_data, size_t at)
{
    if (display_data->open >= 0)
        display_data->fields[display_data->open].end = at;
    display_data->open = -1;
}

static bool wants(void *user, unsigned depth, const char *name, size_t size, size_t at)
{
    struct display_data *display_data = user;
    if (depth == 2 && !display_data->is_failure && display_data->open == DATA) {
        bool is_wanted = is_mime_type(name, size) && ++display_data->types <= TYPES_MAX;
        if (is_wanted && size == strlen("text/plain") && memcmp(name, "text/plain", size) == 0)
            display_data->plain_at = at;
        return is_wanted;
    }
    if (depth == 2)
        return true;
    size_t count;
    const struct field *fields = fields_of(display_data, &count);
    end_field(display_data, at);
    for (size_t i = 0; i < count && display_data->open < 0; i++)
        if (strlen(fields[i].name) == size && memcmp(fields[i].name, name, size) == 0)
            display_data->open = (int) i;
    if (display_data->open < 0)
        return false;
    display_data->fields[display_data->open].at = at;
    return true;
}

void display_data_begin(struct display_data *display_data, bool is_failure)
{
    *display_data = (struct display_data){ .is_failure = is_failure, .open = -1 };
    json_copy_init(&display_data->copy, wants, display_data);
}

void display_data_take(struct display_data *display_data, const char *data, size_t size)
{
    json_copy_take(&display_data->copy, data, size);
}

void display_data_done(struct display_data *display_data)
{
    json_copy_done(&display_data->copy);
    *display_data = (struct display_data){ 0 };
}

/* Finds the fields of the right type. */
static bool look(struct display_data *display_data)
{
    size_t count;
    const struct field *fields = fields_of(display_data, &count);
    if (!json_copy_is_whole(&display_data->copy))
        return false;
    end_field(display_data, display_data->copy.text.size);
    for (size_t i = 0; i < count; i++) {
        struct display_data_span *span = &display_data->fields[i];
        span->is_there =
            span->end > span->at && display_data->copy.text.data[span->at] == fields[i].begins;
    }
    return true;
}

static void write_value(const struct display_data *display_data, struct bytes *out, const char *key,
                        const struct display_data_span *span)
{
    json_key(out, key);
    json_raw(out, display_data->copy.text.data + span->at, span->end - span->at);
}

static size_t length_of(const struct display_data_span *span)
{
    return span->end - span->at - 2; /* without quotes or brackets */
}

/* Returns the position after the text that begins at `at` with a quote. The copy is well-formed, so
 * the text has an end. */
static size_t end_of_text(const struct bytes *text, size_t at)
{
    size_t end = at + 1;
    while (end < text->size && text->data[end] != '"')
        end += text->data[end] == '\\' ? 2 : 1;
    return end + 1;
}

/* `data` was written up to `end`: notes where its text/plain is. */
static void note_plain(struct display_data *display_data, size_t end)
{
    const struct bytes *text = &display_data->copy.text;
    const struct display_data_span *data = &display_data->fields[DATA];
    size_t at = display_data->plain_at;
    if (at <= data->at || at >= data->end || text->data[at] != '"')
        return;
    size_t begin = end - (data->end - at);
    display_data->plain = (struct display_data_span){ .at = begin,
                                                      .end = begin + end_of_text(text, at) - at,
                                                      .is_there = true };
}

bool display_data_write(struct display_data *display_data, struct bytes *out, bool is_main)
{
    const struct display_data_span *fields = display_data->fields;
    if (!look(display_data) || !fields[DATA].is_there)
        return false;
    bytes_add(out, "{", 1);
    json_flag_field(out, "main", is_main);
    write_value(display_data, out, "data", &fields[DATA]);
    note_plain(display_data, out->size);
    if (fields[CHART].is_there)
        write_value(display_data, out, "chart", &fields[CHART]);
    else
        json_null_field(out, "chart");
    if (fields[METADATA].is_there && length_of(&fields[METADATA]) > 0)
        write_value(display_data, out, "metadata", &fields[METADATA]);
    if (fields[ID].is_there && length_of(&fields[ID]) <= ID_LENGTH_MAX) {
        write_value(display_data, out, "id", &fields[ID]);
        json_flag_field(out, "update", fields[UPDATE].is_there);
    }
    json_close(out, '}');
    return true;
}

bool display_data_write_failure(struct display_data *display_data, struct bytes *out)
{
    if (!look(display_data) || !display_data->fields[NAME].is_there)
        return false;
    bytes_add(out, "{", 1);
    for (size_t i = 0; i < COUNT_OF(failure_fields); i++) {
        const struct field *field = &failure_fields[i];
        if (display_data->fields[i].is_there) {
            write_value(display_data, out, field->name, &display_data->fields[i]);
        } else if (field->otherwise) {
            json_key(out, field->name);
            json_raw(out, field->otherwise, strlen(field->otherwise));
        }
    }
    json_close(out, '}');
    return true;
}
