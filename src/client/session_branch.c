/* session_branch.c - branches and checkpoints of sessions. */
#include "client/client.h"
#include "client/request_body.h"
#include "client/session.h"

#include <stdio.h>

static void write_checkpoint(struct sink *sink, const void *what)
{
    const char *const *names = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_text(&body, "name", names[0]);
    body_text(&body, "context", names[1]);
    sink_text(sink, "}");
}

static void write_branch(struct sink *sink, const void *what)
{
    const glb_branch_options *options = what;
    struct body body = { .sink = sink };
    sink_text(sink, "{");
    body_text(&body, "context", options->context);
    body_text(&body, "checkpoint", options->checkpoint);
    body_pairs(&body, "metadata", options->metadata);
    body_seconds(&body, "idle_seconds", options->idle_ms);
    body_seconds(&body, "ttl_seconds", options->lifetime_ms);
    sink_text(sink, "}");
}

int32_t glb_session_branch_with(glb_client *client, const char *session,
                                const glb_branch_options *options, size_t options_size,
                                char **ret_json)
{
    error err = { 0 };
    char path[256];
    glb_branch_options ours;
    struct http_request request = json_post(path, write_branch, &ours);
    int taken = take_options(&ours, sizeof ours, options, options_size) < 0 ? too_new(&err) : 0;
    const char *const texts[] = { ours.context ? ours.context : "",
                                  ours.checkpoint ? ours.checkpoint : "", NULL };
    if (taken < 0 || session_path(path, sizeof path, session, "/branch", &err) < 0 ||
        check_texts("a name", texts, &err) < 0 ||
        check_pairs("the metadata", ours.metadata, &err) < 0 ||
        client_ask(client, &request, ret_json, &err) < 0)
        return report(&err);
    return GLB_OK;
}

int32_t glb_session_branch(glb_client *client, const char *session, const char *context,
                           const char *checkpoint, char **ret_json)
{
    const glb_branch_options options = { .context = context, .checkpoint = checkpoint };
    return glb_session_branch_with(client, session, &options, sizeof options, ret_json);
}

int32_t glb_session_checkpoint(glb_client *client, const char *session, const char *name,
                               const char *context, char **ret_json)
{
    error err = { 0 };
    char path[256];
    const char *const names[] = { name, context };
    const char *const texts[] = { name ? name : "", context ? context : "", NULL };
    struct http_request request = json_post(path, write_checkpoint, names);
    if (session_path(path, sizeof path, session, "/checkpoints", &err) < 0 ||
        check_texts("a name", texts, &err) < 0 || client_ask(client, &request, ret_json, &err) < 0)
        return report(&err);
    return GLB_OK;
}

int32_t glb_session_checkpoints(glb_client *client, const char *session, char **ret_json)
{
    return session_ask(client, "GET", session, "/checkpoints", ret_json);
}

/* Sends a request for a checkpoint of the session, without a body: DELETE of it, or POST of what
 * is below it, such as "/rollback". */
static int32_t checkpoint_ask(struct glb_client *client, const char *session,
                              const char *checkpoint, const char *below, char **ret_json)
{
    error err = { 0 };
    char place[200];
    if (checkpoint && id_is_plain(checkpoint) &&
        (size_t) snprintf(place, sizeof place, "/checkpoints/%s%s", checkpoint, below) <
            sizeof place)
        return session_ask(client, *below ? "POST" : "DELETE", session, place, ret_json);
    (void) fail(&err, ERR_BAD_REQUEST, "'%.60s' is no checkpoint; glovebox session checkpoints ID",
                checkpoint ? checkpoint : "");
    return report(&err);
}

int32_t glb_session_checkpoint_remove(glb_client *client, const char *session,
                                      const char *checkpoint, char **ret_json)
{
    return checkpoint_ask(client, session, checkpoint, "", ret_json);
}

int32_t glb_session_rollback(glb_client *client, const char *session, const char *checkpoint,
                             char **ret_json)
{
    return checkpoint_ask(client, session, checkpoint, "/rollback", ret_json);
}
