/* service_checkpoints.h - checkpoints of a session: made, listed, removed, gone back to. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <json.h>

struct session;

/* Adds an array of those that are ready, the newest first. */
void service_checkpoints_write(const struct session *session, struct bytes *out);

/* By id or name; adds it as it was, a Checkpoint of docs/api.md.
 * Fails  ERR_NOT_FOUND; ERR_CONFLICT  it is not ready */
int service_checkpoint_remove(struct session *session, const char *name, struct bytes *out,
                              error *err);

struct checkpoint_wait;

/* The asker, the session, and the waiter that is woken when it is done. All borrowed. */
struct checkpoint_asker {
    const struct caller *caller;
    struct session *session;
    const struct waker *waker;
};

/* Begins to make one as a CheckpointRequest asks, which is borrowed; NULL: of the first context,
 * without a name. The waker is not called before this returns.
 * Fails  ERR_BAD_REQUEST; ERR_LIMIT, ERR_BUSY  there are as many as may be; ERR_CONFLICT  the name
 *        is taken, or the session cannot be copied now */
int service_checkpoint_make(const struct checkpoint_asker *asker, struct json_object *request,
                            struct checkpoint_wait **ret_wait, error *err);

/* Begins to make the session what it was at a checkpoint, by id or name.
 * Fails  as service_checkpoint_remove(); ERR_CONFLICT  the session does not run, is on its way back
 *        already, or is being branched */
int service_session_roll_back(const struct checkpoint_asker *asker, const char *checkpoint,
                              struct checkpoint_wait **ret_wait, error *err);

bool checkpoint_wait_is_over(const struct checkpoint_wait *wait);
/* Adds what came of it: the Checkpoint, or the Session. Fails  with why it did not succeed. */
int checkpoint_wait_result(struct checkpoint_wait *wait, struct bytes *out, error *err);
/* Frees it. A checkpoint that is still being made ends: it has no owner. */
void checkpoint_wait_done(struct checkpoint_wait *wait);
