/* rollback.h - a session becomes again what it was at one of its checkpoints: it keeps its id, its
 * deadlines and its checkpoints, and gets another sandbox. Until that stands the session is as it
 * was. */
#pragma once

#include "base/error.h"
#include "engine/session/activity.h"

struct account;
struct session_checkpoint;
struct session;
struct rollback;

struct rollback_order {
    struct session_checkpoint *checkpoint;
    const struct account *asker;
    void (*told)(void *user, const error *why); /* the end; *why NULL: it is done */
    void *user;
};

/* Begins one.
 * Fails  ERR_CONFLICT  the session does not run, is on its way back already, or is being branched.
 */
int session_roll_back(struct session *session, const struct rollback_order *order, error *err);
void rollback_unsubscribe(struct session *session,
                          const void *user); /* it is not notified any more */

extern const struct session_activity rollback_activity;
