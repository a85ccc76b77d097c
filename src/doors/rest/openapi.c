/* openapi.c - prints the OpenAPI 3.1 document from the route tables, the schemas, limits.def and
 * errors.def, so that it always describes what is served. */
#include "doors/rest/openapi.h"

#include "base/table.h"
#include "engine/service/schema/schema_write.h"
#include "model/errors.h"
#include "json/writer.h"

#include <ctype.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

/* A list of all rows with the same path: the first of them writes all. */
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

/* The text for a path parameter, by the part of the path before it. */
static const char *path_parameter_text(const char *path, const char *brace)
{
    static const struct {
        const char *before, *text;
    } texts[] = {
        { "runs/", "of a run, as the answer that began it names it" },
        { "sessions/", "of a session, as POST /v1/sessions has answered" },
        { "signed/", "of a session" },
        { "receipts/", "of a receipt, or of the run that it belongs to" },
        { "approvals/", "of an approval" },
        { "artifacts/", "of the bytes, in hex" },
        { "contexts/", "of a context: a language, or its own id" },
        { "checkpoints/", "of a checkpoint" },
        { "processes/", "of a program: its id, its pid, or its tag" },
        { "ports/", "that the server listens on" },
        { "files/", "of a file, beneath /workspace" },
    };
    for_each(row, texts) {
        size_t length = strlen(row->before);
        if ((size_t) (brace - path) >= length && strncmp(brace - length, row->before, length) == 0)
            return row->text;
    }
    return "the rest of the path";
}

static void write_path_parameters(struct bytes *out, const char *path)
{
    for (const char *brace = strchr(path, '{'); brace; brace = strchr(brace + 1, '{')) {
        json_open(out, '{');
        json_key(out, "name");
        json_text(out, brace + 1, strcspn(brace + 1, "}"));
        json_string_field(out, "in", "path");
        json_flag_field(out, "required", true);
        json_string_field(out, "description", path_parameter_text(path, brace));
        json_key(out, "schema");
        schema_type_write(out, "string", NULL);
        json_close(out, '}');
    }
}

static void write_parameters(struct bytes *out, const struct route *route)
{
    json_open_field(out, "parameters", '[');
    write_path_parameters(out, route->path);
    for (const struct parameter *each = route->query; each && each->name; each++) {
        json_open(out, '{');
        json_string_field(out, "name", each->name);
        json_string_field(out, "in", each->place == IN_QUERY ? "query" : "header");
        json_flag_field(out, "required", each->is_required);
        json_string_field(out, "description", each->text);
        json_key(out, "schema");
        schema_type_write(out, each->type, NULL);
        json_close(out, '}');
    }
    json_close(out, ']');
}

/* JSON has a schema. Events are text: docs/api.md describes them. All else is bytes, for which
 * generators know this format. */
static void write_content(struct bytes *out, const char *mime, const char *schema)
{
    json_open_field(out, mime, '{');
    json_key(out, "schema");
    if (schema) {
        schema_reference_write(out, schema);
    } else {
        json_open(out, '{');
        if (strcmp(mime, "application/json") != 0)
            json_string_field(out, "type", "string");
        if (strncmp(mime, "text/", 5) != 0 && strcmp(mime, "application/json") != 0)
            json_string_field(out, "format", "binary");
        json_close(out, '}');
    }
    json_close(out, '}');
}

/* Generators know bytes by this type. */
static void write_bytes_content(struct bytes *out, const char *mime)
{
    bool is_text = strncmp(mime, "text/", 5) == 0;
    if (!is_text && strcmp(mime, "application/json") != 0)
        write_content(out, "application/octet-stream", NULL);
    write_content(out, mime, NULL);
}

static void write_body(struct bytes *out, const struct route *route)
{
    if (route->body == BODY_NONE)
        return;
    json_open_field(out, "requestBody", '{');
    json_flag_field(out, "required", route->body == BODY_JSON && !route->may_lack_body);
    json_open_field(out, "content", '{');
    if (route->body == BODY_JSON)
        write_content(out, "application/json", route->takes);
    else
        write_content(out, "application/octet-stream", NULL);
    json_close_all(out, "}}");
}

static void open_named_answer(struct bytes *out, const char *name, const char *text)
{
    json_open_field(out, name, '{');
    json_string_field(out, "description", text);
    json_open_field(out, "content", '{');
}

static void open_answer(struct bytes *out, unsigned status, const char *text)
{
    char code[12];
    (void) snprintf(code, sizeof code, "%u", status);
    open_named_answer(out, code, text);
}

static void close_answer(struct bytes *out)
{
    json_close_all(out, "}}");
}

static bool reads_header(const struct route *route, const char *name)
{
    for (const struct parameter *each = route->query; each && each->name; each++)
        if (each->place == IN_HEADER && strcmp(each->name, name) == 0)
            return true;
    return false;
}

/* The first code of errors.def with this status: it lists all others. */
static bool is_first_of_status(enum error_code code)
{
    for (int other = ERR_NONE + 1; other < (int) code; other++)
        if (error_row_of(other)->http_status == error_row_of(code)->http_status)
            return false;
    return true;
}

static void write_failures(struct bytes *out, const struct route *route)
{
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        unsigned status = (unsigned) error_row_of(code)->http_status;
        if (!is_first_of_status(code) || (code == ERR_RANGE && !reads_header(route, "Range")))
            continue;
        if (route->or_503 && status == MHD_HTTP_SERVICE_UNAVAILABLE) {
            open_answer(out, status, "What is missing");
            write_content(out, "application/json", route->or_503);
            close_answer(out);
            continue;
        }
        char path[64];
        (void) snprintf(path, sizeof path, "#/components/responses/Error%u", status);
        json_key(out, path + sizeof "#/components/responses/Error" - 1);
        json_open(out, '{');
        json_string_field(out, "$ref", path);
        json_close(out, '}');
    }
}

/* Writes each status of errors.def once, with all that it may mean. */
static void write_errors(struct bytes *out)
{
    json_open_field(out, "responses", '{');
    for (int code = ERR_NONE + 1; code < ERR_COUNT; code++) {
        const struct error_row *row = error_row_of(code);
        auto_bytes text = { 0 };
        char name[16];
        if (!is_first_of_status(code))
            continue;
        for (int other = code; other < ERR_COUNT; other++) {
            const struct error_row *same = error_row_of(other);
            if (same->http_status != row->http_status || other == ERR_INTERNAL + 1)
                continue; /* a 304 has no error code */
            bytes_print(&text, "%s%s: %s", text.size > 0 ? "; " : "", same->json_code, same->text);
        }
        (void) snprintf(name, sizeof name, "Error%u", (unsigned) row->http_status);
        open_named_answer(out, name, bytes_text(&text));
        write_content(out, "application/json", "Error");
        close_answer(out);
    }
    json_close(out, '}');
}

static void write_answers(struct bytes *out, const struct route *route)
{
    const char *mime = route->mime ? route->mime : "application/json";
    json_open_field(out, "responses", '{');
    open_answer(out, route->status > 0 ? route->status : MHD_HTTP_OK, "What was asked for");
    if (route->mime)
        write_bytes_content(out, mime);
    else
        write_content(out, mime, route->gives);
    if (route->streams && route->status > 0) { /* streams begin with 200: exchange_stream */
        close_answer(out);
        open_answer(out, MHD_HTTP_OK, "Its events as they happen");
    }
    if (route->streams && strcmp(mime, "text/event-stream") != 0)
        write_content(out, "text/event-stream", NULL);
    close_answer(out);
    if (reads_header(route, "Range")) {
        open_answer(out, MHD_HTTP_PARTIAL_CONTENT, "The part that was asked for");
        write_bytes_content(out, mime);
        close_answer(out);
    }
    if (route->may_be_202) {
        open_answer(out, MHD_HTTP_ACCEPTED,
                    "It goes on, and Location says where to ask; or it waits for approval");
        write_content(out, "application/json", "RunResultOrState");
        close_answer(out);
    }
    write_failures(out, route);
    json_close(out, '}');
}

/* "createRun": the method's name in generated clients. For a path with every method, "Port" becomes
 * "getPort", "putPort" … */
static void write_operation_id(struct bytes *out, const struct route *route, const char *method)
{
    char name[64];
    bool is_any = strcmp(route->method, "ANY") == 0;
    (void) snprintf(name, sizeof name, "%s%s", is_any ? method : "", route->operation);
    json_string_field(out, "operationId", name);
}

/* The sentence of the route: up to a semicolon as the summary; whole, with the scope it needs, as
 * the description. */
static void write_text(struct bytes *out, const struct route *route, enum right right)
{
    auto_bytes text = { 0 };
    char scopes[64];
    json_key(out, "summary");
    json_text(out, route->text, strcspn(route->text, ";:"));
    service_right_print(right, scopes, sizeof scopes);
    if (right == RIGHT_NONE)
        bytes_print(&text, "%s. No key is needed.", route->text);
    else if (right == RIGHT_ANY)
        bytes_print(&text, "%s. Any key will do.", route->text);
    else
        bytes_print(&text, "%s. The key needs %s %s.", route->text,
                    strchr(scopes, ',') ? "one of the scopes" : "the scope", scopes);
    json_string_field(out, "description", bytes_text(&text));
}

static void write_operation(struct bytes *out, const struct route_table *table,
                            const struct route *route, const char *method)
{
    enum right right = route->right ? route->right : table->right;
    json_open_field(out, method, '{');
    write_operation_id(out, route, method);
    write_text(out, route, right);
    json_open_field(out, "tags", '[');
    json_string(out, table->name);
    json_close(out, ']');
    if (right == RIGHT_NONE) {
        json_open_field(out, "security", '[');
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
    json_open_field(out, "paths", '{');
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

static void write_components(struct bytes *out)
{
    json_open_field(out, "components", '{');
    schemas_write(out);
    write_errors(out);
    json_open_field(out, "securitySchemes", '{');
    json_open_field(out, "key", '{');
    json_string_field(out, "type", "http");
    json_string_field(out, "scheme", "bearer");
    json_close_all(out, "}}}");
}

static void write_info(struct bytes *out)
{
    json_open_field(out, "info", '{');
    json_string_field(out, "title", "glovebox");
    json_string_field(out, "version", GLOVEBOX_VERSION);
    json_string_field(out, "description", "Runs code that a language model wrote, in sandboxes");
    json_open_field(out, "license", '{');
    json_string_field(out, "name", "Apache 2.0");
    json_string_field(out, "identifier", "Apache-2.0");
    json_close(out, '}');
    json_open_field(out, "contact", '{');
    json_string_field(out, "name", "glovebox");
    json_close_all(out, "}}");
}

/* The URL of the daemon that serves this document. */
static void write_servers(struct bytes *out)
{
    json_open_field(out, "servers", '[');
    json_open(out, '{');
    json_string_field(out, "url", "/");
    json_string_field(out, "description", "The daemon that served this document");
    json_close_all(out, "}]");
}

static void write_tags(struct bytes *out, const struct route_table *const *tables)
{
    json_open_field(out, "tags", '[');
    for (; *tables; tables++) {
        json_open(out, '{');
        json_string_field(out, "name", (*tables)->name);
        json_string_field(out, "description", (*tables)->text);
        json_close(out, '}');
    }
    json_close(out, ']');
}

void openapi_write(const struct route_table *const *tables, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "openapi", "3.1.0");
    write_info(out);
    write_servers(out);
    json_open_field(out, "security", '[');
    json_open(out, '{');
    json_open_field(out, "key", '[');
    json_close_all(out, "]}");
    json_open(out, '{'); /* none: the owner's Unix socket */
    json_close_all(out, "}]");
    write_tags(out, tables);
    write_paths(out, tables);
    write_components(out);
    json_close(out, '}');
}
