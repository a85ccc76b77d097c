/* ask.c - see ask.h: over the connection of the library. */
#include "cli/ask.h"

#include "base/cleanup.h"
#include "client/client.h"
#include "client/wire_text.h"

#include <string.h>

enum { ANSWER_MS = 330000, ANSWER_MOST = 16 << 20 };

static void write_body(struct sink *sink, const void *what)
{
    json_object *body = (json_object *) (uintptr_t) what;
    sink_text(sink, json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN));
}

int ask_daemon(glb_client *client, const struct ask *ask, json_object **ret_answer, error *err)
{
    struct http *http = NULL;
    struct http_request request = { .method = ask->method,
                                    .path = ask->path,
                                    .accept = "application/json",
                                    .key = ask->key,
                                    .write_body = ask->body ? write_body : NULL,
                                    .what = ask->body };
    size_t size = 0;
    for (const char *at = ask->key; at && *at; at++)
        if (*at <= ' ' || *at > '~')
            return fail(err, ERR_BAD_REQUEST, "the key is none; write it as glb_…");
    if (client_connection(client, &http, err) < 0)
        return -1;
    http->until = deadline_in(ANSWER_MS);
    auto_text body = NULL;
    int result = http_send(http, &request, err);
    if (result == 0)
        result = http_receive(http, err);
    if (result == 0)
        result = http_read_all(http, ANSWER_MOST, &body, &size, err);
    if (result == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    if (result != 0)
        return result < 0 ? -1 : client_lost(client, err);
    if (http->status != 200)
        return answer_failed(http->status, body, err);
    *ret_answer = json_tokener_parse(body);
    return *ret_answer ? 0 : fail(err, ERR_PROTOCOL, "gloveboxd sent an answer that is none");
}

json_object *answer_member(json_object *object, const char *name)
{
    json_object *value = NULL;
    return object && json_object_object_get_ex(object, name, &value) ? value : NULL;
}

const char *answer_text(json_object *object, const char *name)
{
    json_object *value = answer_member(object, name);
    return value ? json_object_get_string(value) : "";
}
