/* rollback.h - returns a session to one of its checkpoints: it keeps its id, deadlines and
 * checkpoints, and gets another sandbox. Until the new sandbox is ready the session does not
 * change. */
#pragma once

#include "base/error.h"
#include "engine/session/activity.h"

struct account;
struct session_checkpoint;

struct rollback_order {
    struct session_checkpoint *checkpoint;
    const struct account *asker;
    void (*told)(void *user, const error *why); /* called at the end; *why NULL: it succeeded */
    void *user;
};

/* Begins a rollback. Fails  ERR_CONFLICT  the session does not run, is being rolled back already,
 * or is being branched. */
int session_roll_back(struct session *session, const struct rollback_order *order, error *err);
/* `user` is not notified any more. */
void rollback_unsubscribe(struct session *session, const void *user);

extern const struct session_activity rollback_activity;
