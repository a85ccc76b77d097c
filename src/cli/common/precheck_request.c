/* precheck_request.c - one request with `check_only`. */
#include "cli/common/precheck_request.h"

#include "base/text.h"
#include "cli/daemon_request.h"

#include <string.h>

static void add_text(json_object *body, const char *name, const char *text, size_t size)
{
    if (text)
        (void) json_object_object_add(body, name, json_object_new_string_len(text, (int) size));
}

int look_at_code(glb_client *client, const struct look *look, json_object **ret_result, error *err)
{
    size_t bad = text_find_undecodable(look->code, look->code_size);
    if (bad < look->code_size)
        return fail(err, ERR_BAD_REQUEST,
                    "the code is no text at offset %zu (byte 0x%02x); is it a program?", bad,
                    (unsigned char) look->code[bad]);
    auto_json body = json_object_new_object();
    const struct ask ask = { "POST", "/v1/runs", body, NULL };
    (void) json_object_object_add(body, "check_only", json_object_new_boolean(true));
    add_text(body, "code", look->code, look->code_size);
    add_text(body, "language", look->language, look->language ? strlen(look->language) : 0);
    add_text(body, "policy", look->policy, look->policy ? strlen(look->policy) : 0);
    auto_json result = NULL;
    if (ask_daemon(client, &ask, &result, err) < 0)
        return -1;
    if (!look_decision(result))
        return fail(err, ERR_PROTOCOL,
                    "the daemon cannot look at code; it is older than this program");
    *ret_result = take_json(&result);
    return 0;
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

const char *look_decision(json_object *result)
{
    return json_object_get_string(json_member(json_member(result, "checks"), "decision"));
}

const char *look_failure(json_object *result)
{
    return json_object_get_string(json_member(json_member(result, "checks"), "failure"));
}

bool look_finding_at(json_object *result, size_t index, struct look_finding *ret_finding)
{
    json_object *findings = json_member(json_member(result, "checks"), "findings");
    if (!findings || index >= json_object_array_length(findings))
        return false;
    json_object *finding = json_object_array_get_idx(findings, index);
    *ret_finding = (struct look_finding){
        .rule = json_object_get_string(json_member(finding, "rule")),
        .decision = json_object_get_string(json_member(finding, "decision")),
        .subject = json_object_get_string(json_member(finding, "subject")),
        .line = json_object_get_int(json_member(finding, "line")),
    };
    return ret_finding->rule && ret_finding->decision && ret_finding->subject;
}
