/* branch.h - a session that begins as a copy of another one: with the variables of one of its
 * contexts, and its files. It has its own sandbox, and the two share nothing.
 *
 * has a sandbox --> its moment is fixed --> is filled --> runs
 *
 * See  docs/sessions.md, docs/decisions/0070-branches-from-memory-images.md */
#pragma once

#include "engine/session/activity.h"
#include "engine/session/capture.h"
#include "engine/session/context_state.h"
#include "engine/snapshot/restore.h"

#include <json.h>

/* What a session is copied from: a live context, or a checkpoint. */
struct session_source {
    struct session *session;
    struct context *context;
    struct session_checkpoint *checkpoint;
    unsigned processes; /* that run there and are not copied */
    const char *id;     /* session_request.id */
};

/* Finds the context to copy; `name` NULL: the Python one. Fails as capture_check(). */
int branch_choose(struct session *session, const char *name, struct context **ret_context,
                  error *err);

/* Begins a session from another. `overrides` may have metadata, idle_seconds and ttl_seconds, and
 * is borrowed. Gives and fails as session_create(), and as capture_check(). */
int session_branch(const struct session_source *source, struct account *asker,
                   struct json_object *overrides, struct session **ret_session, error *err);

/* Adds to `texts`, each ended by NUL, what else the session has that the copy does not. */
void branch_note_others(const struct session *session, const struct context *chosen,
                        struct bytes *texts);
void branch_note_files(const struct capture *copy, struct bytes *texts); /* the same for files */
int pipe_make(int *ret_read, int *ret_write, error *err);

/* True if the content of the branch is fixed and it may be answered for, while its sandbox is still
 * being filled. False if the session runs or has ended. */
bool branch_is_fixed(const struct session *session);

extern const struct session_activity branch_activity;
