/* branch.c - glovebox session branch, checkpoint, checkpoints, rollback. */
#include "cli/session/session.h"

#include <stdio.h>

/* The daemon answers before it has read the memory of a branch; this waits until it has, and
 * replaces the session in `json` by its new state. */
static int32_t wait_until_it_stands(const struct session_arguments *arguments, char **json)
{
    auto_json root = json_tokener_parse(*json);
    char *standing = NULL;
    int32_t code = glb_session_get(arguments->client, answer_text(root, "id"), &standing);
    glb_text_free(*json);
    *json = standing;
    return code;
}

static int has_stood(const char *json, error *err)
{
    auto_json root = json_tokener_parse(json);
    json_object *ended = json_member(root, "ended");
    return ended ? fail(err, ERR_CONFLICT, "%s", answer_text(ended, "message")) : 0;
}

int session_branch(struct session_arguments *arguments, error *err)
{
    auto_text json = NULL;
    const glb_branch_options options = {
        .context = arguments->in,
        .checkpoint = arguments->checkpoint,
        .metadata = arguments->label_count > 0 ? arguments->labels : NULL,
        .idle_ms = arguments->idle_ms,
        .lifetime_ms = arguments->lifetime_ms,
    };
    int32_t code = glb_session_branch_with(arguments->client, arguments->session, &options,
                                           sizeof options, &json);
    if (code == GLB_OK)
        code = wait_until_it_stands(arguments, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    if (has_stood(json, err) < 0)
        return -1;
    return session_answered(arguments, GLB_OK, take_text(&json), true, err);
}

int session_checkpoint(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    int32_t code = glb_session_checkpoint(arguments->client, arguments->session,
                                          arguments->count > 1 ? arguments->words[1] : NULL,
                                          arguments->in, &json);
    return session_answered(arguments, code, json, true, err);
}

static void print_checkpoint(json_object *checkpoint)
{
    json_object *bytes = json_member(checkpoint, "bytes");
    (void) printf("%-36s  %s  %6lld MiB  %s\n", answer_text(checkpoint, "id"),
                  answer_text(checkpoint, "created_at"),
                  (long long) (json_object_get_int64(bytes) + (1 << 20) - 1) >> 20,
                  answer_text(checkpoint, "name"));
}

int session_checkpoints(struct session_arguments *arguments, error *err)
{
    auto_text json = NULL;
    int32_t code = glb_session_checkpoints(arguments->client, arguments->session, &json);
    if (code != GLB_OK)
        return library_failed(code, err);
    auto_json root = json_tokener_parse(json);
    if (!arguments->json)
        (void) printf("%-36s  %-24s  %10s  %s\n", "ID", "CREATED", "SIZE", "NAME");
    session_print_list(arguments, list_of(root, "checkpoints"), print_checkpoint);
    return 0;
}

int session_checkpoint_remove(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    int32_t code = glb_session_checkpoint_remove(arguments->client, arguments->session,
                                                 arguments->words[1], &json);
    return session_answered(arguments, code, json, false, err);
}

int session_rollback(struct session_arguments *arguments, error *err)
{
    char *json = NULL;
    int32_t code =
        glb_session_rollback(arguments->client, arguments->session, arguments->words[1], &json);
    return session_answered(arguments, code, json, false, err);
}
