/* service_checkpoints.h - checkpoints of a session: make, list, remove, roll back. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <json.h>

struct session;

/* Adds an array of those that are ready, the newest first. */
void service_checkpoints_write(const struct session *session, struct bytes *out);

/* Removes one by id or name; adds its last state, a Checkpoint of docs/api.md. Fails
 * ERR_NOT_FOUND; ERR_CONFLICT  it is not ready */
int service_checkpoint_remove(struct session *session, const char *name, struct bytes *out,
                              error *err);

struct checkpoint_wait;

/* The caller, the session, and the waker for the end. All borrowed. */
struct checkpoint_asker {
    const struct caller *caller;
    struct session *session;
    const struct waker *waker;
};

/* Begins a checkpoint. The CheckpointRequest is borrowed; NULL: of the first context, without a
 * name. The waker is not called before this returns. Fails  ERR_BAD_REQUEST; ERR_LIMIT, ERR_BUSY
 * there are too many; ERR_CONFLICT  the name is used, or the session cannot be copied now */
int service_checkpoint_make(const struct checkpoint_asker *asker, struct json_object *request,
                            struct checkpoint_wait **ret_wait, error *err);

/* Begins to roll the session back to a checkpoint, by id or name. Fails  as
 * service_checkpoint_remove(); ERR_CONFLICT  the session does not run, is being rolled back
 * already, or is being branched */
int service_session_roll_back(const struct checkpoint_asker *asker, const char *checkpoint,
                              struct checkpoint_wait **ret_wait, error *err);

bool checkpoint_wait_is_over(const struct checkpoint_wait *wait);
/* Adds the result: the Checkpoint, or the Session. Fails  with the reason of the failure. */
int checkpoint_wait_result(struct checkpoint_wait *wait, struct bytes *out, error *err);
/* Frees the wait. A checkpoint that is not finished is dropped, since it has no owner. */
void checkpoint_wait_done(struct checkpoint_wait *wait);
