/* tool_schema.c - the JSON Schemas of a tool: of its arguments, which the same rows check, and of
 * its result, which is a schema of the OpenAPI document with all schemas that it refers to. */
#include "doors/mcp/mcp.h"
#include "engine/service/schema/schema_write.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEFINITIONS_MAX = 64, SCHEMAS_MAX = 16 };

static const char reference[] = "#/components/schemas/";

/* The schemas that a text refers to, directly or not, each once. */
struct definitions {
    const struct schema *list[DEFINITIONS_MAX];
    size_t count;
    bool has_limits;
};

static void add_references(struct definitions *found, const char *text)
{
    for (const char *at = text; (at = strstr(at, reference));) {
        char name[64];
        at += sizeof reference - 1;
        (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(at, "\""), at);
        const struct schema *schema = schema_find(name);
        bool is_known = !schema;
        found->has_limits |= !schema;
        for (size_t i = 0; i < found->count; i++)
            is_known |= found->list[i] == schema;
        if (!is_known && found->count < DEFINITIONS_MAX)
            found->list[found->count++] = schema;
    }
}

/* Replaces "#/components/schemas/Name" by "#/$defs/Name", since the schema stands alone. */
static void add_moved(struct bytes *out, const char *text)
{
    for (const char *at; (at = strstr(text, reference)); text = at + sizeof reference - 1) {
        bytes_add(out, text, (size_t) (at - text));
        bytes_add_text(out, "#/$defs/");
    }
    bytes_add_text(out, text);
}

/* Adds ,"$defs":{…} with all that `text` refers to. */
static void write_definitions(const char *text, struct bytes *out)
{
    struct definitions found = { 0 };
    auto_bytes all = { 0 };
    add_references(&found, text);
    for (size_t i = 0; i < found.count; i++) {
        auto_bytes one = { 0 };
        schema_write(&one, found.list[i]);
        add_references(&found, bytes_text(&one));
        bytes_add_text(&all, i > 0 ? "," : "");
        bytes_add(&all, one.data, one.size);
    }
    if (found.has_limits) {
        bytes_add_text(&all, found.count > 0 ? "," : "");
        auto_bytes limits = { 0 };
        schema_limits_write(&limits);
        bytes_add(&all, limits.data, limits.size);
    }
    if (all.size == 0)
        return;
    bytes_add_text(out, ",\"$defs\":{");
    add_moved(out, bytes_text(&all));
    bytes_add_text(out, "}");
}

/* --- schemas of arguments --------------------------------------------------------------------- */

static void write_arguments(const struct mcp_tool *tool, struct bytes *out)
{
    json_open_field(out, "properties", '{');
    for (const struct property *row = tool->arguments; row && row->name; row++) {
        const char *header = mcp_header_of(row->name);
        json_key(out, row->name);
        schema_type_write(out, row->type, row->text);
        if (header && out->size > 0) {
            out->size--; /* removes its brace */
            json_string_field(out, "x-mcp-header", header);
            json_close(out, '}');
        }
    }
    json_close(out, '}');
    json_open_field(out, "required", '[');
    for (const struct property *row = tool->arguments; row && row->name; row++)
        if (!row->may_lack)
            json_string(out, row->name);
    json_close(out, ']');
    json_flag_field(out, "additionalProperties", false);
}

void mcp_input_schema_write(const struct mcp_tool *tool, struct bytes *out)
{
    auto_bytes text = { 0 };
    if (tool->schema) {
        json_raw(out, tool->schema, strlen(tool->schema));
        return;
    }
    bytes_add_text(&text, "\"type\":\"object\"");
    write_arguments(tool, &text);
    json_raw(out, "{", 1);
    add_moved(out, bytes_text(&text));
    write_definitions(bytes_text(&text), out);
    bytes_add_text(out, "}");
    out->failed |= text.failed;
}

/* --- schemas of results ----------------------------------------------------------------------- */

static void write_output_schema(const char *name, struct bytes *out)
{
    auto_bytes text = { 0 };
    const struct schema *schema = schema_find(name);
    if (!schema)
        return;
    schema_write(&text, schema); /* "Name":{…} */
    const char *body = strchr(bytes_text(&text), '{');
    if (!body)
        return;
    json_raw(out, "{", 1);
    if (!schema->fields)
        bytes_add_text(out, "\"type\":\"object\",");
    auto_bytes moved = { 0 };
    add_moved(&moved, body + 1);
    if (moved.size > 0)
        moved.size--; /* removes the closing brace */
    bytes_add(out, moved.data, moved.size);
    write_definitions(body, out);
    bytes_add_text(out, "}");
    out->failed |= text.failed || moved.failed;
}

/* Each is written once. */
void mcp_output_schema_write(const char *name, struct bytes *out)
{
    static struct {
        const char *name;
        struct bytes text;
    } written[SCHEMAS_MAX];
    size_t i = 0;
    while (i < SCHEMAS_MAX && written[i].name && strcmp(written[i].name, name) != 0)
        i++;
    if (i == SCHEMAS_MAX) {
        write_output_schema(name, out);
        return;
    }
    if (!written[i].name)
        write_output_schema(name, &written[i].text);
    written[i].name = name;
    json_raw(out, written[i].text.data, written[i].text.size);
    out->failed |= written[i].text.failed;
}

/* --- checks of arguments ---------------------------------------------------------------------- */

/* Reads " 1..255"; -1: no bound. */
static void read_bounds(const char *type, int64_t *min, int64_t *max)
{
    const char *blank = strchr(type, ' ');
    const char *dots = blank ? strstr(blank, "..") : NULL;
    *min = 0;
    *max = INT64_MAX;
    if (!dots)
        return;
    *min = strtoll(blank + 1, NULL, 10);
    *max = strtoll(dots + 2, NULL, 10);
}

static int check_text(const struct property *row, struct json_object *value, error *err)
{
    int64_t min, max;
    if (!json_object_is_type(value, json_type_string))
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a text", row->name);
    int64_t size = json_object_get_string_len(value);
    read_bounds(row->type, &min, &max);
    if (size < min || size > max)
        return fail(err, ERR_BAD_REQUEST, "'%s' must have %" PRId64 " to %" PRId64 " bytes",
                    row->name, min, max);
    if (max < INT64_MAX && memchr(json_object_get_string(value), 0, (size_t) size))
        return fail(err, ERR_BAD_REQUEST, "'%s' has a NUL character", row->name);
    return 0;
}

static int check_word(const struct property *row, struct json_object *value, error *err)
{
    const char *words = row->type + 1;
    const char *text =
        json_object_is_type(value, json_type_string) ? json_object_get_string(value) : "";
    size_t size = (size_t) json_object_get_string_len(value);
    for (const char *at = words; *at; at += strcspn(at, ","), at += *at == ',')
        if (size == strcspn(at, ",") && memcmp(at, text, size) == 0)
            return 0;
    return fail(err, ERR_BAD_REQUEST, "'%s' must be one of %s", row->name, words);
}

static int check_number(const struct property *row, struct json_object *value, error *err)
{
    int64_t min, max;
    bool is_whole = strncmp(row->type, "count", 5) == 0;
    read_bounds(row->type, &min, &max);
    bool is_number = json_object_is_type(value, json_type_int) ||
                     (!is_whole && json_object_is_type(value, json_type_double));
    double number = is_number ? json_object_get_double(value) : -1;
    if (!is_number || number < (double) min || number > (double) max)
        return fail(err, ERR_BAD_REQUEST, "'%s' must be a %snumber from %" PRId64 " to %" PRId64,
                    row->name, is_whole ? "whole " : "", min, max);
    return 0;
}

/* The members of lists and objects are checked by the code that reads them. */
static int check_argument(const struct property *row, struct json_object *value, error *err)
{
    switch (row->type[0]) {
    case 's':
        return check_text(row, value, err);
    case '=':
        return check_word(row, value, err);
    case 'c':
    case 'n':
        return check_number(row, value, err);
    case 'b':
        if (row->type[1] == 'a')
            return check_text(row, value, err);
        return json_object_is_type(value, json_type_boolean)
                   ? 0
                   : fail(err, ERR_BAD_REQUEST, "'%s' must be true or false", row->name);
    case '[':
        return json_object_is_type(value, json_type_array)
                   ? 0
                   : fail(err, ERR_BAD_REQUEST, "'%s' must be a list", row->name);
    default:
        return 0;
    }
}

static const struct property *find_row(const struct mcp_tool *tool, const char *name)
{
    for (const struct property *row = tool->arguments; row && row->name; row++)
        if (strcmp(row->name, name) == 0)
            return row;
    return NULL;
}

int mcp_arguments_check(const struct mcp_tool *tool, struct json_object *arguments, error *err)
{
    if (tool->schema)
        return 0;
    for (const struct property *row = tool->arguments; row && row->name; row++)
        if (!row->may_lack && !json_member(arguments, row->name))
            return fail(err, ERR_BAD_REQUEST, "%s needs the argument '%s': %s", tool->name,
                        row->name, row->text);
    if (!arguments)
        return 0;
    json_object_object_foreach(arguments, name, value)
    {
        const struct property *row = find_row(tool, name);
        if (!row)
            return fail(err, ERR_BAD_REQUEST, "%s has no argument '%.60s'", tool->name, name);
        if (check_argument(row, value, err) < 0)
            return -1;
    }
    return 0;
}
