/* run_content.c - the end of a run, for a model: a few lines of text, figures as images, files as
 * links; and the native result beside it. The output of a program is always text within one result,
 * whatever it looks like. */
#include "base/table.h"
#include "base/text.h"
#include "doors/mcp/mcp.h"
#include "engine/service/service_approvals.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { IMAGES_MAX = 16, LINKS_MAX = 64, DENIALS_MAX = 4, DEPTH_MAX = 256 };

static void add_line(struct bytes *text, const char *line)
{
    if (text->size > 0 && text->data[text->size - 1] != '\n')
        bytes_add(text, "\n", 1);
    bytes_add_text(text, line);
}

static void add_output(struct bytes *text, struct json_object *result, const char *stream,
                       const char *heading)
{
    char line[160];
    struct json_object *output = json_member(result, stream);
    (void) snprintf(line, sizeof line, "%s_total_bytes", stream);
    uint64_t total = member_count(json_member(result, "truncated"), line);
    size_t size = output ? (size_t) json_object_get_string_len(output) : 0;
    if (size == 0)
        return;
    if (heading)
        add_line(text, heading);
    else if (text->size > 0)
        add_line(text, "");
    bytes_add(text, json_object_get_string(output), size);
    if (total <= size)
        return;
    (void) snprintf(line, sizeof line, "[%s is cut: %" PRIu64 " bytes were written, %zu are shown]",
                    stream, total, size);
    add_line(text, line);
}

/* The plain text of each value that a cell displayed. */
static void add_values(struct bytes *text, struct json_object *result)
{
    struct json_object *list = json_member(result, "results");
    size_t count = list ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count; i++) {
        struct json_object *data = json_member(json_object_array_get_idx(list, i), "data");
        struct json_object *plain = json_member(data, "text/plain");
        if (!plain || !json_object_is_type(plain, json_type_string))
            continue;
        add_line(text, "");
        bytes_add(text, json_object_get_string(plain), (size_t) json_object_get_string_len(plain));
    }
}

/* Among the arguments of tools is only the wall-clock limit, with another name: see
 * limit_sentence() for the message. */
static void add_limit(struct bytes *text, const char *message, bool is_bare)
{
    static const char field[] = "limits.", wall[] = "limits.wall_ms", or_wider[] = " or a wider";
    const char *at = strstr(message, field), *rest = at ? strstr(at, or_wider) : NULL;
    int before = rest ? (int) (at - message) : (int) strlen(message);
    bool has_argument = rest && !is_bare && text_begins(at, wall);
    add_line(text, "");
    bytes_print(text, "%.*s%s%s", before, message, has_argument ? "timeout_ms" : "",
                !rest          ? ""
                : has_argument ? at + sizeof wall - 1
                               : rest + sizeof " or " - 1);
}

static void add_fault(struct bytes *text, struct json_object *result, bool is_bare)
{
    struct json_object *fault = json_member(result, "error"), *limit = json_member(result, "limit");
    const char *trace = member_text(fault, "traceback");
    if (trace && *trace) {
        add_line(text, trace);
    } else if (fault) {
        add_line(text, "");
        bytes_print(text, "%s: %s",
                    member_text(fault, "name") ? member_text(fault, "name") : "error",
                    member_text(fault, "value") ? member_text(fault, "value") : "");
    }
    const char *message = member_text(limit, "message");
    if (message)
        add_limit(text, message, is_bare);
}

static void add_denials(struct bytes *text, struct json_object *result)
{
    struct json_object *list = json_member(result, "denials");
    size_t count = list ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count && i < DENIALS_MAX; i++) {
        const char *message = member_text(json_object_array_get_idx(list, i), "message");
        if (!message)
            continue;
        add_line(text, "[denied: ");
        bytes_print(text, "%s]", message);
    }
    if (count > DENIALS_MAX) {
        add_line(text, "");
        bytes_print(text, "[and %zu denials more]", count - DENIALS_MAX);
    }
}

static void add_file(struct bytes *text, struct json_object *file)
{
    const char *path = member_text(file, "path") ? member_text(file, "path") : "?";
    mcp_add_name(text, path, strlen(path));
}

static size_t count_files(struct json_object *result)
{
    struct json_object *list = json_member(result, "artifacts");
    return list ? json_object_array_length(list) : 0;
}

static void add_files(struct bytes *text, struct json_object *result)
{
    struct json_object *list = json_member(result, "artifacts");
    size_t count = count_files(result);
    if (count == 0)
        return;
    add_line(text, "[files:");
    for (size_t i = 0; i < count && i < LINKS_MAX; i++) {
        struct json_object *file = json_object_array_get_idx(list, i);
        bytes_add_text(text, i > 0 ? ", " : " ");
        add_file(text, file);
        bytes_print(text, " (%" PRIu64 " bytes)", member_count(file, "bytes"));
    }
    bytes_add_text(text, count > LINKS_MAX ? " and more]" : "]");
}

static void add_page(struct bytes *text, const struct mcp_call *call, const char *approval)
{
    auto_bytes url = { 0 };
    service_approval_page(call->exchange->service, approval, &url);
    if (url.size > 0)
        bytes_print(text, ", or at %s", bytes_text(&url));
}

/* Which session it ran in, what is kept, and what to do next. */
static void add_place(struct bytes *text, const struct mcp_call *call, struct json_object *result)
{
    const struct mcp_work *work = &call->work;
    const char *status = member_text(result, "status");
    const char *approval = member_text(result, "approval");
    struct json_object *exit_code = json_member(result, "exit_code");
    const char *session = member_text(json_member(result, "cell"), "session");
    bool is_pending = status && strcmp(status, "pending_approval") == 0;
    if (!session && work->session[0])
        session = work->session; /* nothing has run there */
    add_line(text, "[");
    bytes_print(text, "%s", status ? status : "?");
    if (exit_code && json_object_get_int64(exit_code) != 0)
        bytes_print(text, ", exit code %" PRId64, json_object_get_int64(exit_code));
    if (member_text(result, "signal"))
        bytes_print(text, ", %s", member_text(result, "signal"));
    if (session)
        bytes_print(text, "; session %s%s keeps variables and files", session,
                    work->is_mine ? " (yours)" : "");
    else if (!is_pending)
        bytes_print(text, "; a sandbox of its own, of which nothing is kept%s",
                    count_files(result) > 0 ? " but the files above" : "");
    bytes_add_text(text, "]");
    if (is_pending && approval) {
        add_line(text, "");
        bytes_print(text,
                    "Nothing has run: a person must approve it first, with: glovebox approve %s",
                    approval);
        add_page(text, call, approval);
        bytes_add_text(text, ". Then make the same call again. Do not repeat it before.");
    }
    if (work->note[0])
        add_line(text, work->note);
}

static void write_text(const struct mcp_call *call, struct json_object *result, struct bytes *out)
{
    auto_bytes text = { 0 };
    bool is_bare = call->tool && call->tool->is_bare;
    add_output(&text, result, "stdout", NULL);
    add_values(&text, result);
    add_output(&text, result, "stderr", "[stderr]\n");
    add_fault(&text, result, is_bare);
    if (text.size == 0)
        bytes_add_text(&text, "(no output)");
    add_denials(&text, result);
    if (!is_bare) {
        add_files(&text, result);
        add_place(&text, call, result);
    }
    out->failed |= text.failed;
    mcp_content_text(out, bytes_text(&text), text.size);
}

static void write_images(struct json_object *result, struct bytes *out)
{
    static const char *const kinds[] = { "image/png", "image/jpeg", "image/gif", "image/webp" };
    struct json_object *list = json_member(result, "results");
    size_t count = list ? json_object_array_length(list) : 0;
    unsigned written = 0;
    for (size_t i = 0; i < count && written < IMAGES_MAX; i++) {
        struct json_object *data = json_member(json_object_array_get_idx(list, i), "data");
        const char *base64 = NULL;
        const char *mime = NULL;
        for_each(kind, kinds)
            if (!base64 && (base64 = member_text(data, *kind)))
                mime = *kind;
        if (!base64)
            continue;
        json_open(out, '{');
        json_string_field(out, "type", "image");
        json_string_field(out, "data", base64);
        json_string_field(out, "mimeType", mime);
        json_close(out, '}');
        written++;
    }
}

static void write_links(struct json_object *result, struct bytes *out)
{
    struct json_object *list = json_member(result, "artifacts");
    const char *run = member_text(result, "id");
    size_t count = list ? json_object_array_length(list) : 0;
    for (size_t i = 0; i < count && i < LINKS_MAX && run; i++) {
        struct json_object *file = json_object_array_get_idx(list, i);
        auto_bytes name = { 0 }, uri = { 0 };
        add_file(&name, file);
        bytes_print(&uri, "glovebox://artifacts/%s",
                    member_text(file, "sha256") ? member_text(file, "sha256") : "");
        json_open(out, '{');
        json_string_field(out, "type", "resource_link");
        json_string_field(out, "uri", bytes_text(&uri));
        json_string_field(out, "name", bytes_text(&name));
        json_string_field(out, "mimeType", member_text(file, "mime"));
        json_count_field(out, "size", member_count(file, "bytes"));
        json_close(out, '}');
    }
}

/* True if the model can do something about the failure: it is the program's own, a limit, or a
 * refusal. */
static bool is_failure(struct json_object *result)
{
    const char *status = member_text(result, "status");
    struct json_object *exit_code = json_member(result, "exit_code");
    return !status || strcmp(status, "ok") != 0 ||
           (exit_code && json_object_get_int64(exit_code) != 0);
}

/* Reads our own document: it may contain much JSON of a program. */
static struct json_object *read_result(const struct bytes *text)
{
    struct json_tokener *reader = json_tokener_new_ex(DEPTH_MAX);
    if (!reader)
        return NULL;
    struct json_object *result = json_tokener_parse_ex(reader, text->data, (int) text->size);
    json_tokener_free(reader);
    return result;
}

void mcp_run_write(const struct mcp_call *call, const struct bytes *text, struct bytes *out)
{
    auto_json result = read_result(text);
    bool is_bare = call->tool && call->tool->is_bare;
    out->failed |= !result;
    json_open_field(out, "content", '[');
    write_text(call, result, out);
    if (!is_bare) {
        write_images(result, out);
        write_links(result, out);
    }
    json_close(out, ']');
    if (!is_bare) {
        json_key(out, "structuredContent");
        json_raw(out, text->data, text->size);
    }
    json_flag_field(out, "isError", is_failure(result));
}

void mcp_run_tell(struct mcp_call *call, const struct watch *watch)
{
    mcp_run_write(call, watch_result(watch), mcp_result_open(call, NULL));
    mcp_result_close(call);
}
