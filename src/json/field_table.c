/* field_table.c - checks each key of the object against its row. */
#include "json/field_table.h"

#include "base/bytes.h"
#include "json/payload.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static int read_text(struct json_object *value, const struct field *field, error *err)
{
    const char *text = json_object_get_string(value);
    size_t size = (size_t) json_object_get_string_len(value);
    if (!json_object_is_type(value, json_type_string) || size > field->max ||
        memchr(text, '\0', size))
        return fail(err, ERR_BAD_REQUEST,
                    "'%s' must be a text of at most %" PRIu64 " bytes, without NUL", field->name,
                    field->max);
    bytes_add(field->place, text, size);
    return 0;
}

static int read_base64(struct json_object *value, const struct field *field, error *err)
{
    struct payload content;
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a text in base64", field->name);
    if (payload_from_base64(&content, json_object_get_string(value),
                            (size_t) json_object_get_string_len(value), err) < 0)
        return under(err, "'%s'", field->name);
    if (content.size > field->max)
        return fail(err, ERR_BAD_REQUEST, "'%s' has %" PRIu64 " bytes, %" PRIu64 " are allowed",
                    field->name, content.size, field->max);
    unsigned char piece[3072];
    for (uint64_t at = 0; at < content.size;) {
        size_t got = payload_read(&content, at, piece, sizeof piece);
        bytes_add(field->place, piece, got);
        at += got;
    }
    return 0;
}

static int read_field(struct json_object *value, const struct field *field, error *err)
{
    int64_t number;
    switch (field->kind) {
    case FIELD_TEXT:
        return read_text(value, field, err);
    case FIELD_BASE64:
        return read_base64(value, field, err);
    case FIELD_COUNT:
        number = json_object_get_int64(value);
        if (!json_object_is_type(value, json_type_int) || number < 0 ||
            (uint64_t) number > field->max)
            return fail(err, ERR_BAD_REQUEST, "'%s' must be a number from 0 to %" PRIu64,
                        field->name, field->max);
        *(uint64_t *) field->place = (uint64_t) number;
        return 0;
    case FIELD_FLAG:
        if (!json_object_is_type(value, json_type_boolean))
            return fail(err, ERR_BAD_REQUEST, "'%s' must be true or false", field->name);
        *(bool *) field->place = json_object_get_boolean(value);
        return 0;
    case FIELD_JSON:
        *(struct json_object **) field->place = value;
        return 0;
    }
    return fail(err, ERR_INTERNAL, "a field of no kind");
}

int fields_read(struct json_object *json, const struct field *fields, size_t count, error *err)
{
    if (!json)
        return 0;
    if (!json_object_is_type(json, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "the body must be a JSON object");
    json_object_object_foreach(json, key, value)
    {
        size_t at = 0;
        while (at < count && strcmp(fields[at].name, key) != 0)
            at++;
        if (at == count)
            return fail(err, ERR_BAD_REQUEST, "unknown key '%.60s'", key);
        if (read_field(value, &fields[at], err) < 0)
            return -1;
    }
    return 0;
}
