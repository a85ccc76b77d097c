/* look.c - one request with `check_only`, over the connection of the library. */
#include "cli/look.h"

#include "base/cleanup.h"
#include "client/client.h"
#include "client/wire_text.h"

#include <string.h>

enum { LOOK_WAIT_MS = 120000, ANSWER_MOST = 1 << 20 };

static void write_member(struct sink *sink, const char *name, const char *text, size_t size)
{
    if (!text)
        return;
    sink_text(sink, ",");
    sink_json_string(sink, name, strlen(name));
    sink_text(sink, ":");
    sink_json_string(sink, text, size);
}

static void write_request(struct sink *sink, const void *what)
{
    const struct look *look = what;
    sink_text(sink, "{\"check_only\":true");
    write_member(sink, "code", look->code, look->code_size);
    write_member(sink, "language", look->language, look->language ? strlen(look->language) : 0);
    write_member(sink, "policy", look->policy, look->policy ? strlen(look->policy) : 0);
    sink_text(sink, "}");
}

int look_at_code(glb_client *client, const struct look *look, json_object **ret_result, error *err)
{
    struct http *http = NULL;
    struct http_request request = { .method = "POST",
                                    .path = "/v1/runs",
                                    .accept = "application/json",
                                    .write_body = write_request,
                                    .what = look };
    size_t size = 0;
    size_t bad = text_first_bad_byte(look->code, look->code_size);
    if (bad < look->code_size)
        return fail(err, ERR_BAD_REQUEST,
                    "the code is no text at offset %zu (byte 0x%02x); is it a program?", bad,
                    (unsigned char) look->code[bad]);
    if (client_connection(client, &http, err) < 0)
        return -1;
    http->until = deadline_in(LOOK_WAIT_MS);
    auto_text body = NULL;
    int result = http_send(http, &request, err);
    if (result == 0)
        result = http_receive(http, err);
    if (result == 0)
        result = http_read_all(http, ANSWER_MOST, &body, &size, err);
    if (result != 0)
        return result < 0 ? -1 : client_lost(client, err);
    if (http->status != 200)
        return answer_failed(http->status, body, err);
    *ret_result = json_tokener_parse(body);
    if (*ret_result && look_decision(*ret_result))
        return 0;
    (void) json_object_put(*ret_result);
    return fail(err, ERR_PROTOCOL, "the daemon cannot look at code; it is older than this program");
}

int look_connect_private(const char *state, const char *template_name, glb_client **ret_client,
                         error *err)
{
    glb_connect_options options = { .state = state,
                                    .how = GLB_CONNECT_PRIVATE,
                                    .template_name = template_name };
    if (glb_connect(&options, sizeof options, ret_client) == GLB_OK)
        return 0;
    return fail(err, ERR_UNAVAILABLE, "%s", glb_error_text());
}

static json_object *member(json_object *object, const char *name)
{
    json_object *value = NULL;
    return json_object_object_get_ex(object, name, &value) ? value : NULL;
}

const char *look_decision(json_object *result)
{
    return json_object_get_string(member(member(result, "checks"), "decision"));
}

const char *look_failure(json_object *result)
{
    return json_object_get_string(member(member(result, "checks"), "failure"));
}

bool look_finding_at(json_object *result, size_t index, struct look_finding *ret_finding)
{
    json_object *findings = member(member(result, "checks"), "findings");
    if (!findings || index >= json_object_array_length(findings))
        return false;
    json_object *finding = json_object_array_get_idx(findings, index);
    *ret_finding = (struct look_finding){
        .rule = json_object_get_string(member(finding, "rule")),
        .decision = json_object_get_string(member(finding, "decision")),
        .subject = json_object_get_string(member(finding, "subject")),
        .line = json_object_get_int(member(finding, "line")),
    };
    return ret_finding->rule && ret_finding->decision && ret_finding->subject;
}
