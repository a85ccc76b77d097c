/* openapi.c - prints the OpenAPI 3.1 document from the route tables, the schemas, limits.def and
 * errors.def: what is served is what is described. */
#include "daemon/rest/openapi.h"

#include "base/table.h"
#include "daemon/json_writer.h"
#include "daemon/rest/http.h"
#include "daemon/rest/rest.h"
#include "model/errors.h"
#include "model/limits.h"

#include <ctype.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TYPE_MOST = 160 };

/* --- types --------------------------------------------------------------------------------------
 */

static void write_reference(struct bytes *out, const char *name)
{
    char path[96];
    (void) snprintf(path, sizeof path, "#/components/schemas/%.60s", name);
    json_open(out, '{');
    json_string_field(out, "$ref", path);
    json_close(out, '}');
}

/* " 1..255" behind a simple type. */
static void write_bounds(struct bytes *out, const char *type, const char *least, const char *most)
{
    const char *blank = strchr(type, ' ');
    const char *dots = blank ? strstr(blank, "..") : NULL;
    if (!dots)
        return;
    json_count_field(out, least, strtoull(blank, NULL, 10));
    json_count_field(out, most, strtoull(dots + 2, NULL, 10));
}

static void write_words(struct bytes *out, const char *words, bool may_be_null)
{
    json_key(out, "enum");
    json_open(out, '[');
    while (*words) {
        size_t length = strcspn(words, ",");
        json_text(out, words, length);
        words += length + (words[length] == ',');
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
    } else if (begins(type, "count")) {
        write_name(out, "integer", may_be_null);
        if (!strchr(type, ' '))
            json_count_field(out, "minimum", 0);
        write_bounds(out, type, "minimum", "maximum");
    } else if (!begins(type, "any")) {
        write_name(out, type, may_be_null);
    }
}

static void write_type(struct bytes *out, const char *type, const char *text);

static void write_inner(struct bytes *out, const char *type, bool may_be_null)
{
    bool is_list = strncmp(type, "[]", 2) == 0;
    if (is_list || strncmp(type, "{}", 2) == 0) {
        write_name(out, is_list ? "array" : "object", may_be_null);
        json_key(out, is_list ? "items" : "additionalProperties");
        json_open(out, '{');
        if (isupper((unsigned char) type[2])) {
            char path[96];
            (void) snprintf(path, sizeof path, "#/components/schemas/%.60s", type + 2);
            json_string_field(out, "$ref", path);
        } else {
            write_simple(out, type + 2, false);
        }
        json_close(out, '}');
    } else if (isupper((unsigned char) *type)) {
        json_key(out, "anyOf");
        json_open(out, '[');
        write_reference(out, type);
        if (may_be_null) {
            json_open(out, '{');
            json_string_field(out, "type", "null");
            json_close(out, '}');
        }
        json_close(out, ']');
    } else {
        write_simple(out, type, may_be_null);
    }
}

static void write_type(struct bytes *out, const char *type, const char *text)
{
    char plain[TYPE_MOST];
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

/* --- schemas ------------------------------------------------------------------------------------
 */

static void write_fields(struct bytes *out, const struct schema *schema)
{
    json_string_field(out, "type", "object");
    json_key(out, "properties");
    json_open(out, '{');
    for (const struct property *field = schema->fields; field->name; field++) {
        json_key(out, field->name);
        write_type(out, field->type, field->text);
    }
    json_close(out, '}');
    json_key(out, "required");
    json_open(out, '[');
    for (const struct property *field = schema->fields; field->name; field++)
        if (!field->may_lack)
            json_string(out, field->name);
    json_close(out, ']');
    json_flag_field(out, "additionalProperties", schema->is_open);
}

static void write_schema(struct bytes *out, const struct schema *schema)
{
    json_key(out, schema->name);
    json_open(out, '{');
    json_string_field(out, "description", schema->text);
    if (schema->fields) {
        write_fields(out, schema);
    } else {
        json_key(out, "anyOf");
        json_open(out, '[');
        for (size_t i = 0; i < COUNT_OF(schema->either) && schema->either[i]; i++)
            write_reference(out, schema->either[i]);
        json_close(out, ']');
    }
    json_close(out, '}');
}

/* Straight from limits.def. */
static void write_limits(struct bytes *out)
{
    json_key(out, "Limits");
    json_open(out, '{');
    json_string_field(out, "description", "Limits of a run; the unit is in the name");
    json_string_field(out, "type", "object");
    json_key(out, "properties");
    json_open(out, '{');
    for_each(row, limit_rows) {
        uint64_t scale = row->unit == UNIT_MILLI ? 1000 : 1;
        json_key(out, row->json_name);
        json_open(out, '{');
        json_string_field(out, "type", scale > 1 ? "number" : "integer");
        json_count_field(out, "minimum", row->least / scale);
        json_count_field(out, "maximum", row->most / scale);
        json_string_field(out, "description", row->text);
        json_close(out, '}');
    }
    json_close(out, '}');
    json_flag_field(out, "additionalProperties", false);
    json_close(out, '}');
}

static void write_components(struct bytes *out)
{
    json_key(out, "components");
    json_open(out, '{');
    json_key(out, "schemas");
    json_open(out, '{');
    write_limits(out);
    for (const struct schema *const *table = schema_tables; *table; table++)
        for (const struct schema *schema = *table; schema->name; schema++)
            write_schema(out, schema);
    json_close(out, '}');
    json_key(out, "securitySchemes");
    json_open(out, '{');
    json_key(out, "key");
    json_open(out, '{');
    json_string_field(out, "type", "http");
    json_string_field(out, "scheme", "bearer");
    json_close(out, '}');
    json_close(out, '}');
    json_close(out, '}');
}

/* --- routes -------------------------------------------------------------------------------------
 */

/* Ends the list of those who have the same path: the first of them writes them all. */
struct place_in_tables {
    const struct route_table *const *table;
    size_t row;
};

static const struct route *next_route(struct place_in_tables *at)
{
    while (*at->table && at->row == (*at->table)->count) {
        at->table++;
        at->row = 0;
    }
    return *at->table ? &(*at->table)->rows[at->row++] : NULL;
}

static bool came_before(const struct route_table *const *tables, const struct route *route)
{
    struct place_in_tables at = { tables, 0 };
    for (const struct route *other = next_route(&at); other && other != route;
         other = next_route(&at))
        if (strcmp(other->path, route->path) == 0)
            return true;
    return false;
}

static void write_path_parameters(struct bytes *out, const char *path)
{
    for (const char *brace = strchr(path, '{'); brace; brace = strchr(brace + 1, '{')) {
        json_open(out, '{');
        json_key(out, "name");
        json_text(out, brace + 1, strcspn(brace + 1, "}"));
        json_string_field(out, "in", "path");
        json_flag_field(out, "required", true);
        json_key(out, "schema");
        write_type(out, "string", NULL);
        json_close(out, '}');
    }
}

static void write_parameters(struct bytes *out, const struct route *route)
{
    json_key(out, "parameters");
    json_open(out, '[');
    write_path_parameters(out, route->path);
    for (const struct parameter *each = route->query; each && each->name; each++) {
        json_open(out, '{');
        json_string_field(out, "name", each->name);
        json_string_field(out, "in", each->place == IN_QUERY ? "query" : "header");
        json_flag_field(out, "required", each->is_required);
        json_string_field(out, "description", each->text);
        json_key(out, "schema");
        write_type(out, each->type, NULL);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_content(struct bytes *out, const char *mime, const char *schema)
{
    json_key(out, mime);
    json_open(out, '{');
    json_key(out, "schema");
    if (schema)
        write_reference(out, schema);
    else if (strcmp(mime, "application/json") == 0)
        write_type(out, "object", NULL);
    else
        write_type(out, "string", NULL);
    json_close(out, '}');
}

static void write_body(struct bytes *out, const struct route *route)
{
    if (route->body == BODY_NONE)
        return;
    json_key(out, "requestBody");
    json_open(out, '{');
    json_flag_field(out, "required", route->body == BODY_JSON && route->takes);
    json_key(out, "content");
    json_open(out, '{');
    if (route->body == BODY_JSON)
        write_content(out, "application/json", route->takes);
    else
        write_content(out, "application/octet-stream", NULL);
    json_close(out, '}');
    json_close(out, '}');
}

static void open_answer(struct bytes *out, unsigned status, const char *text)
{
    char code[8];
    (void) snprintf(code, sizeof code, "%u", status);
    json_key(out, code);
    json_open(out, '{');
    json_string_field(out, "description", text);
    json_key(out, "content");
    json_open(out, '{');
}

static void close_answer(struct bytes *out)
{
    json_close(out, '}');
    json_close(out, '}');
}

/* Each status of errors.def once, with what it may mean. */
static void write_failures(struct bytes *out, const struct route *route)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        const struct error_row *row = error_row_of(code);
        bool is_first = true;
        auto_bytes text = { 0 };
        for (int other = ERR_NONE + 1; other < ERR_COUNT; other++) {
            const struct error_row *same = error_row_of(other);
            if (same->http_status != row->http_status)
                continue;
            is_first = is_first && other >= code;
            if (other == ERR_INTERNAL + 1)
                continue; /* no code of its own */
            bytes_print(&text, "%s%s: %s", text.size > 0 ? "; " : "", same->json_code, same->text);
        }
        bool has_range = route->mime && strcmp(route->mime, "*/*") == 0;
        if (!is_first || (code == ERR_RANGE && !has_range))
            continue;
        open_answer(out, (unsigned) row->http_status, bytes_text(&text));
        write_content(out, "application/json", "Error");
        close_answer(out);
    }
}

static void write_answers(struct bytes *out, const struct route *route)
{
    const char *mime = route->mime ? route->mime : "application/json";
    json_key(out, "responses");
    json_open(out, '{');
    open_answer(out, route->status > 0 ? route->status : MHD_HTTP_OK, "What was asked for");
    write_content(out, mime, route->mime ? NULL : route->gives);
    if (route->streams)
        write_content(out, "text/event-stream", NULL);
    close_answer(out);
    if (route->may_be_202) {
        open_answer(out, MHD_HTTP_ACCEPTED,
                    "It goes on, and Location says where to ask; or it waits for approval");
        write_content(out, "application/json", "RunResultOrState");
        close_answer(out);
    }
    write_failures(out, route);
    json_close(out, '}');
}

static char capital(char letter)
{
    return (char) toupper((unsigned char) letter);
}

/* Words of a path put together: "/runs/{id}" becomes "RunsId". */
static size_t join_words(const char *path, char *name, size_t size)
{
    size_t used = 0;
    bool is_start = true;
    for (; *path && used < size; path++) {
        bool is_word = isalnum((unsigned char) *path);
        if (is_word && is_start)
            name[used++] = capital(*path);
        else if (is_word)
            name[used++] = *path;
        is_start = !is_word;
    }
    return used;
}

/* "postRuns", "getRunsIdEvents": what generated clients call it. */
static void write_operation_id(struct bytes *out, const struct route *route, const char *method)
{
    char name[128];
    const char *path = strncmp(route->path, "/v1/", 4) == 0 ? route->path + 4 : route->path;
    size_t used = (size_t) snprintf(name, sizeof name, "%s", method);
    used += join_words(path, name + used, sizeof name - used);
    json_key(out, "operationId");
    json_text(out, name, used);
}

static void write_operation(struct bytes *out, const struct route_table *table,
                            const struct route *route, const char *method)
{
    json_key(out, method);
    json_open(out, '{');
    write_operation_id(out, route, method);
    json_string_field(out, "summary", route->text);
    json_key(out, "tags");
    json_open(out, '[');
    json_string(out, table->name);
    json_close(out, ']');
    if ((route->right ? route->right : table->right) == RIGHT_NONE) {
        json_key(out, "security");
        json_open(out, '[');
        json_close(out, ']');
    }
    write_parameters(out, route);
    write_body(out, route);
    write_answers(out, route);
    json_close(out, '}');
}

static void write_methods(struct bytes *out, const struct route_table *table,
                          const struct route *route)
{
    static const char *const any[] = { "get", "put", "post", "delete", "patch" };
    char method[12];
    if (strcmp(route->method, "ANY") == 0) {
        for_each(each, any)
            write_operation(out, table, route, *each);
        return;
    }
    (void) snprintf(method, sizeof method, "%s", route->method);
    for (char *at = method; *at; at++)
        *at = (char) tolower((unsigned char) *at);
    write_operation(out, table, route, method);
}

static void write_paths(struct bytes *out, const struct route_table *const *tables)
{
    json_key(out, "paths");
    json_open(out, '{');
    struct place_in_tables at = { tables, 0 };
    for (const struct route *route = next_route(&at); route; route = next_route(&at)) {
        if (came_before(tables, route))
            continue;
        json_key(out, route->path);
        json_open(out, '{');
        struct place_in_tables same = { tables, 0 };
        for (const struct route *each = next_route(&same); each; each = next_route(&same))
            if (strcmp(each->path, route->path) == 0)
                write_methods(out, *same.table, each);
        json_close(out, '}');
    }
    json_close(out, '}');
}

void openapi_write(const struct route_table *const *tables, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "openapi", "3.1.0");
    json_key(out, "info");
    json_open(out, '{');
    json_string_field(out, "title", "glovebox");
    json_string_field(out, "version", GLOVEBOX_VERSION);
    json_string_field(out, "description", "Runs code that a language model wrote, in sandboxes");
    json_close(out, '}');
    json_key(out, "security");
    json_open(out, '[');
    json_open(out, '{');
    json_key(out, "key");
    json_open(out, '[');
    json_close(out, ']');
    json_close(out, '}');
    json_open(out, '{'); /* none: the owner's Unix socket */
    json_close(out, '}');
    json_close(out, ']');
    write_paths(out, tables);
    write_components(out);
    json_close(out, '}');
}
