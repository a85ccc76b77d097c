/* schema_write.c - turns the types of schema.h into JSON Schema. */
#include "engine/service/schema/schema_write.h"

#include "base/table.h"
#include "engine/service/schema/schema.h"
#include "model/limits.h"
#include "json/writer.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_MAX = 160 };

/* --- types ------------------------------------------------------------------------------------ */

static void write_reference(struct bytes *out, const char *name)
{
    char path[96];
    (void) snprintf(path, sizeof path, "#/components/schemas/%.60s", name);
    json_string_field(out, "$ref", path);
}

void schema_reference_write(struct bytes *out, const char *name)
{
    json_open(out, '{');
    write_reference(out, name);
    json_close(out, '}');
}

/* " 1..255" after a simple type: the numbers are copied. */
static void write_bounds(struct bytes *out, const char *type, const char *min, const char *max)
{
    const char *blank = strchr(type, ' ');
    const char *dots = blank ? strstr(blank, "..") : NULL;
    if (!dots)
        return;
    json_key(out, min);
    json_raw(out, blank + 1, (size_t) (dots - blank - 1));
    json_key(out, max);
    json_raw(out, dots + 2, strlen(dots + 2));
}

/* " /^[a-z]*$/" after a string. */
static void write_pattern(struct bytes *out, const char *type)
{
    const char *from = strstr(type, " /");
    size_t length = from ? strlen(from + 2) : 0;
    if (length == 0)
        return;
    json_key(out, "pattern");
    json_text(out, from + 2, length - 1);
}

static void write_words(struct bytes *out, const char *words, bool may_be_null)
{
    json_open_field(out, "enum", '[');
    while (*words) {
        size_t length = strcspn(words, ",");
        json_text(out, words, length);
        words += length + strspn(words + length, ", ");
    }
    if (may_be_null)
        json_null(out);
    json_close(out, ']');
}

static bool begins(const char *type, const char *word)
{
    size_t length = strlen(word);
    return strncmp(type, word, length) == 0 && (type[length] == '\0' || type[length] == ' ');
}

static void write_name(struct bytes *out, const char *name, bool may_be_null)
{
    json_key(out, "type");
    if (may_be_null)
        json_open(out, '[');
    json_string(out, name);
    if (may_be_null) {
        json_string(out, "null");
        json_close(out, ']');
    }
}

static void write_simple(struct bytes *out, const char *type, bool may_be_null)
{
    if (*type == '=') {
        write_name(out, "string", may_be_null);
        write_words(out, type + 1, may_be_null);
    } else if (begins(type, "string")) {
        write_name(out, "string", may_be_null);
        write_bounds(out, type, "minLength", "maxLength");
        write_pattern(out, type);
    } else if (begins(type, "text")) {
        write_name(out, "string", may_be_null);
        write_bounds(out, type, "minLength", "maxLength");
        json_string_field(out, "pattern", "^[^\\x00]*$");
    } else if (begins(type, "path")) {
        write_name(out, "string", may_be_null);
        json_string_field(out, "pattern", "^[^/\\x00-\\x1f]{1,255}(/[^/\\x00-\\x1f]{1,255})*$");
    } else if (begins(type, "moment")) {
        write_name(out, "string", may_be_null);
        json_string_field(out, "format", "date-time");
        json_string_field(out, "pattern", "^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z$");
    } else if (begins(type, "base64")) {
        write_name(out, "string", may_be_null);
        json_string_field(out, "contentEncoding", "base64");
    } else if (begins(type, "number")) {
        write_name(out, "number", may_be_null);
        write_bounds(out, type, "minimum", "maximum");
    } else if (begins(type, "count")) {
        write_name(out, "integer", may_be_null);
        if (!strchr(type, ' '))
            json_count_field(out, "minimum", 0);
        write_bounds(out, type, "minimum", "maximum");
    } else if (!begins(type, "any")) {
        write_name(out, type, may_be_null);
    }
}

static void write_null(struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "type", "null");
    json_close(out, '}');
}

/* "[]", "[64]", "[1..]", "{}" or "{name}", and the type of the members. */
static void write_many(struct bytes *out, const char *type, bool may_be_null)
{
    bool is_list = *type == '[';
    const char *each = type + strcspn(type, "]}") + 1;
    write_name(out, is_list ? "array" : "object", may_be_null);
    if (strncmp(type, "[1..]", 5) == 0)
        json_count_field(out, "minItems", 1);
    else if (isdigit((unsigned char) type[1]))
        json_count_field(out, is_list ? "maxItems" : "maxProperties", strtoull(type + 1, NULL, 10));
    if (isalpha((unsigned char) type[1])) {
        json_open_field(out, "propertyNames", '{');
        json_string_field(out, "pattern", "^[A-Za-z_][A-Za-z0-9_]*$");
        json_close(out, '}');
    }
    json_key(out, is_list ? "items" : "additionalProperties");
    json_open(out, '{');
    if (isupper((unsigned char) *each))
        write_reference(out, each);
    else
        write_simple(out, each, false);
    json_close(out, '}');
}

static void write_one_or_many(struct bytes *out, const char *type, bool may_be_null)
{
    if (*type == '[' || *type == '{')
        write_many(out, type, may_be_null);
    else
        write_simple(out, type, may_be_null);
}

static void write_plain(struct bytes *out, const char *type)
{
    json_open(out, '{');
    write_one_or_many(out, type, false);
    json_close(out, '}');
}

/* "string|[]string" */
static void write_union(struct bytes *out, const char *types, bool may_be_null)
{
    json_open_field(out, "anyOf", '[');
    while (*types) {
        char type[TYPE_MAX];
        size_t length = strcspn(types, "|");
        (void) snprintf(type, sizeof type, "%.*s", (int) length, types);
        if (isupper((unsigned char) *type))
            schema_reference_write(out, type);
        else
            write_plain(out, type);
        types += length + (types[length] == '|');
    }
    if (may_be_null)
        write_null(out);
    json_close(out, ']');
}

static void write_inner(struct bytes *out, const char *type, bool may_be_null)
{
    const char *pattern = strstr(type, " /"), *bar = strchr(type, '|');
    bool is_union = bar && (!pattern || bar < pattern); /* in a pattern a bar has another meaning */
    bool is_reference = isupper((unsigned char) *type);
    if (is_reference && !may_be_null && !is_union)
        write_reference(out, type);
    else if (is_union || is_reference)
        write_union(out, type, may_be_null);
    else
        write_one_or_many(out, type, may_be_null);
}

void schema_type_write(struct bytes *out, const char *type, const char *text)
{
    char plain[TYPE_MAX];
    (void) snprintf(plain, sizeof plain, "%s", type);
    size_t length = strlen(plain);
    bool may_be_null = length > 0 && plain[length - 1] == '?';
    if (may_be_null)
        plain[length - 1] = '\0';
    json_open(out, '{');
    write_inner(out, plain, may_be_null);
    if (text && *text)
        json_string_field(out, "description", text);
    json_close(out, '}');
}

/* --- schemas ---------------------------------------------------------------------------------- */

static void write_properties(struct bytes *out, const struct property *fields)
{
    for (const struct property *field = fields; field && field->name; field++) {
        json_key(out, field->name);
        schema_type_write(out, field->type, field->text);
    }
}

static void write_required(struct bytes *out, const struct property *fields)
{
    for (const struct property *field = fields; field && field->name; field++)
        if (!field->may_lack)
            json_string(out, field->name);
}

static void write_fields(struct bytes *out, const struct schema *schema)
{
    json_string_field(out, "type", "object");
    json_open_field(out, "properties", '{');
    write_properties(out, schema->first);
    write_properties(out, schema->fields);
    json_close(out, '}');
    json_open_field(out, "required", '[');
    write_required(out, schema->first);
    write_required(out, schema->fields);
    json_close(out, ']');
    if (schema->is_never_empty)
        json_count_field(out, "minProperties", 1);
    json_flag_field(out, "additionalProperties", schema->is_open);
}

void schema_write(struct bytes *out, const struct schema *schema)
{
    json_key(out, schema->name);
    json_open(out, '{');
    json_string_field(out, "description", schema->text);
    if (schema->fields) {
        write_fields(out, schema);
    } else {
        json_open_field(out, "anyOf", '[');
        for (size_t i = 0; i < COUNT_OF(schema->either) && schema->either[i]; i++)
            schema_reference_write(out, schema->either[i]);
        json_close(out, ']');
    }
    if (schema->example) {
        json_open_field(out, "examples", '[');
        json_raw(out, schema->example, strlen(schema->example));
        json_close(out, ']');
    }
    json_close(out, '}');
}

/* Written from limits.def. */
void schema_limits_write(struct bytes *out)
{
    json_open_field(out, "Limits", '{');
    json_string_field(out, "description", "Limits of a run; the unit is in the name");
    json_string_field(out, "type", "object");
    json_open_field(out, "properties", '{');
    for_each(row, limit_rows) {
        uint64_t scale = row->unit == UNIT_MILLI ? 1000 : 1;
        json_key(out, row->json_name);
        json_open(out, '{');
        json_string_field(out, "type", scale > 1 ? "number" : "integer");
        json_count_field(out, "minimum", row->min / scale);
        json_count_field(out, "maximum", row->max / scale);
        json_string_field(out, "description", row->text);
        json_close(out, '}');
    }
    json_close(out, '}');
    json_flag_field(out, "additionalProperties", false);
    json_close(out, '}');
}

const struct schema *schema_find(const char *name)
{
    for (const struct schema *const *table = schema_tables; *table; table++)
        for (const struct schema *schema = *table; schema->name; schema++)
            if (strcmp(schema->name, name) == 0)
                return schema;
    return NULL;
}

void schemas_write(struct bytes *out)
{
    json_open_field(out, "schemas", '{');
    schema_limits_write(out);
    for (const struct schema *const *table = schema_tables; *table; table++)
        for (const struct schema *schema = *table; schema->name; schema++)
            schema_write(out, schema);
    json_close(out, '}');
}
