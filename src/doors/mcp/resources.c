/* resources.c - files made by runs, by their hash, as results link them. There is no list: links
 * are enough, and one tenant's files are not visible to others. */
#include "base/cleanup.h"
#include "base/read_at.h"
#include "doors/mcp/mcp.h"
#include "engine/service/service_artifacts.h"
#include "json/writer.h"

#include <inttypes.h>
#include <string.h>

enum { READ_MAX = 4 << 20 }; /* read and encoded in one turn of the loop */

static const char prefix[] = "glovebox://artifacts/";

void mcp_resources_list(struct mcp_call *call)
{
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "resources", '[');
    json_close(out, ']');
    mcp_write_caching(call, out);
    mcp_result_close(call);
}

void mcp_resource_templates_list(struct mcp_call *call)
{
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "resourceTemplates", '[');
    json_open(out, '{');
    json_string_field(out, "uriTemplate", "glovebox://artifacts/{sha256}");
    json_string_field(out, "name", "artifact");
    json_string_field(out, "title", "A file that a run has made");
    json_string_field(out, "description", "as the resource links of a result name it");
    json_close_all(out, "}]");
    mcp_write_caching(call, out);
    mcp_result_close(call);
}

static void unknown(struct mcp_call *call, const char *uri)
{
    auto_bytes data = json_begin('{');
    json_string_field(&data, "uri", uri);
    json_close(&data, '}');
    mcp_fail_with(call, call->era == ERA_STATELESS ? MCP_INVALID_PARAMS : -32002, bytes_text(&data),
                  "Resource not found");
}

static int read_file(const struct artifact_file *file, struct bytes *out, error *err)
{
    if (file->size > READ_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "it has %" PRIu64 " bytes, %d are sent here; GET /v1/artifacts has all of it",
                    file->size, READ_MAX);
    char *room = bytes_reserve(out, (size_t) file->size + 1); /* NULL also for no bytes */
    if (!room)
        return fail(err, ERR_SYSTEM, "no memory for a file");
    if (read_at(file->fd, room, (size_t) file->size, 0) != (ssize_t) file->size)
        return fail(err, ERR_SYSTEM, "its bytes cannot be read");
    out->size += (size_t) file->size;
    return 0;
}

static void tell_file(struct mcp_call *call, const char *uri, const struct artifact_file *file)
{
    auto_bytes bytes = { 0 };
    error err;
    if (read_file(file, &bytes, &err) < 0) {
        mcp_fail(call, MCP_INTERNAL, "%s", err.text);
        return;
    }
    struct bytes *out = mcp_result_open(call, NULL);
    json_open_field(out, "contents", '[');
    json_open(out, '{');
    json_string_field(out, "uri", uri);
    json_string_field(out, "mimeType", file->mime);
    json_key(out, "blob");
    json_base64(out, bytes.data, bytes.size);
    json_close_all(out, "}]");
    mcp_write_caching(call, out);
    mcp_result_close(call);
}

static void open_file(struct mcp_call *call)
{
    struct exchange *exchange = call->exchange;
    const char *uri = member_text(call->params, "uri");
    struct artifact_file file = { .fd = -1 };
    error err;
    call->proceed = NULL;
    if (service_artifact_open(exchange->service, &exchange->caller, uri + sizeof prefix - 1, &file,
                              &err) < 0) {
        unknown(call, uri);
        return;
    }
    auto_fd fd = file.fd;
    tell_file(call, uri, &file);
    (void) fd;
}

void mcp_resources_read(struct mcp_call *call)
{
    struct exchange *exchange = call->exchange;
    const char *uri = member_text(call->params, "uri");
    struct artifact_check *check = NULL;
    error err;
    if (!uri) {
        mcp_fail(call, MCP_INVALID_PARAMS, "resources/read has a 'uri', a text");
        return;
    }
    if (strncmp(uri, prefix, sizeof prefix - 1) != 0 ||
        service_check_right(&exchange->caller, RIGHT_RESULTS, &err) < 0) {
        unknown(call, uri);
        return;
    }
    if (service_artifact_check(exchange->service, &exchange->caller, uri + sizeof prefix - 1,
                               &check, &err) < 0) {
        unknown(call, uri);
        return;
    }
    call->work.check = check;
    if (!check) {
        open_file(call);
        return;
    }
    call->proceed = mcp_artifact_checked;
    artifact_check_await(check, mcp_artifact_woken, call);
}

/* After an artifact of an earlier daemon was hashed. */
void mcp_artifact_woken(void *user, const error *why)
{
    struct mcp_call *call = user;
    call->work.check = NULL;
    call->work.is_damaged = why != NULL;
    mcp_call_wake(call);
}

void mcp_artifact_checked(struct mcp_call *call)
{
    if (call->work.check)
        return;
    if (call->work.is_damaged)
        unknown(call, member_text(call->params, "uri"));
    else
        open_file(call);
}
