/* shown.c - known fields of the right type, everything else is left out. */
#include "daemon/shown.h"

#include "base/table.h"
#include "daemon/json_writer.h"

#include <ctype.h>
#include <string.h>

enum { TYPES_MOST = 64, TYPE_LENGTH_MOST = 127, ID_LENGTH_MOST = 255 };

struct field {
    const char *name;
    enum json_type type;
    const char *otherwise; /* what stands there if the program gave none; NULL: nothing */
};

static const struct field failure_fields[] = {
    /* clang-format off */
    { "name",       json_type_string, "\"\"" },
    { "value",      json_type_string, "\"\"" },
    { "traceback",  json_type_string, "\"\"" },
    { "frames",     json_type_array,  "[]" },
    { "causes",     json_type_array,  NULL }, /* __cause__ or __context__, the nearest first */
    { "exceptions", json_type_array,  NULL }, /* of a group */
    /* clang-format on */
};

static void write_value(struct bytes *out, struct json_object *value)
{
    size_t size = 0;
    const char *text = json_object_to_json_string_length(
        value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE, &size);
    json_raw(out, text ? text : "null", text ? size : 4);
}

/* type/subtype, of the characters that RFC 6838 allows. */
static bool is_mime_type(const char *name)
{
    size_t length = strnlen(name, TYPE_LENGTH_MOST + 1);
    const char *slash = memchr(name, '/', length);
    if (length > TYPE_LENGTH_MOST || !slash || slash == name || slash[1] == '\0' ||
        strchr(slash + 1, '/'))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char) name[i]) && !strchr("!#$&-^_.+/", name[i]))
            return false;
    return true;
}

static void write_types(struct bytes *out, struct json_object *types)
{
    unsigned count = 0;
    json_open(out, '{');
    json_object_object_foreach(types, name, value)
    {
        if (!is_mime_type(name) || ++count > TYPES_MOST)
            continue;
        json_key(out, name);
        write_value(out, value);
    }
    json_close(out, '}');
}

static struct json_object *field_of(struct json_object *given, const char *name,
                                    enum json_type type)
{
    struct json_object *value = NULL;
    if (!json_object_object_get_ex(given, name, &value) || !json_object_is_type(value, type))
        return NULL;
    return value;
}

bool shown_write(struct bytes *out, struct json_object *given, bool is_main)
{
    struct json_object *data = field_of(given, "data", json_type_object);
    if (!data)
        return false;
    json_open(out, '{');
    json_flag_field(out, "main", is_main);
    json_key(out, "data");
    write_types(out, data);
    json_key(out, "chart");
    struct json_object *chart = field_of(given, "chart", json_type_object);
    if (chart)
        write_value(out, chart);
    else
        json_null(out);
    struct json_object *metadata = field_of(given, "metadata", json_type_object);
    if (metadata && json_object_object_length(metadata) > 0) {
        json_key(out, "metadata");
        write_value(out, metadata);
    }
    struct json_object *id = field_of(given, "id", json_type_string);
    if (id && json_object_get_string_len(id) <= ID_LENGTH_MOST) {
        json_key(out, "id");
        json_text(out, json_object_get_string(id), (size_t) json_object_get_string_len(id));
        json_flag_field(out, "update",
                        json_object_get_boolean(field_of(given, "update", json_type_boolean)));
    }
    json_close(out, '}');
    return true;
}

bool shown_write_failure(struct bytes *out, struct json_object *given)
{
    if (!field_of(given, "name", json_type_string))
        return false;
    json_open(out, '{');
    for_each(field, failure_fields) {
        struct json_object *value = field_of(given, field->name, field->type);
        if (!value && !field->otherwise)
            continue;
        json_key(out, field->name);
        if (value)
            write_value(out, value);
        else
            json_raw(out, field->otherwise, strlen(field->otherwise));
    }
    json_close(out, '}');
    return true;
}
