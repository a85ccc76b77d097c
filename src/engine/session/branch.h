/* branch.h - a session that begins as another one is: with the variables of one of its contexts,
 * and with its files. It is a session like any other, in a sandbox of its own; nothing is shared.
 *
 *     its sandbox is there --> its moment is fixed --> it is filled --> it runs
 *
 *   See  docs/sessions.md, docs/decisions/0070-branches-from-memory-images.md */
#pragma once

#include "engine/run/run_plan.h"
#include "engine/session/activity.h"
#include "engine/session/capture.h"
#include "engine/session/context_state.h"
#include "engine/snapshot/restore.h"

#include <json.h>

struct session;
struct sessions;
struct session_request;
struct branching;

/* What a session begins from: a context that lives, or a checkpoint. */
struct session_source {
    struct session *session;
    struct context *context;
    struct session_checkpoint *checkpoint;
    unsigned processes; /* that run there, and are not carried */
    const char *id;     /* session_request.id */
};

/* The context that a caller means; NULL: the one that is python's. As capture_check(). */
int branch_choose(struct session *session, const char *name, struct context **ret_context,
                  error *err);

/* Begins a session from another. `wishes` may have metadata, idle_seconds and ttl_seconds, and is
 * borrowed. Gives and fails as session_create(), and as capture_check(). */
int session_branch(const struct session_source *source, struct account *asker,
                   struct json_object *overrides, struct session **ret_session, error *err);

/* Adds to `texts`, each ended by NUL, what lives beside this context: it is not in its copy. */
void branch_note_others(const struct session *session, const struct context *chosen,
                        struct bytes *texts);
void branch_note_files(const struct capture *copy, struct bytes *texts); /* the same of files */
int pipe_make(int *ret_read, int *ret_write, error *err);

/* What the branch is going to be does not change any more: it is answered for, and a caller that
 * wants something of it waits until its sandbox has it all. False if the session stands or has
 * ended. */
bool branch_is_fixed(const struct session *session);

extern const struct session_activity branch_activity;
