/* service_session_wait.h - waits for sessions: a new one until it stands, and requests about one
 * that come too early.
 *
 * A branch is answered for as soon as its moment is fixed, some time before its sandbox has all the
 * memory: until then requests to it wait, and so does what would end the parent that is still being
 * read. Bounded by the deadlines of restore.h: then the branch stands or has ended, and the request
 * is answered accordingly. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

struct session;
struct session_wait;

/* What a request about a session waits for before anything of it is done. */
enum awaits {
    AWAITS_NOTHING = 0,
    AWAITS_STANDING, /* a branch has all that it begins with */
    AWAITS_COPIES,   /* nothing of it is still being read for a branch */
    AWAITS_BOTH,
    AWAITS_COPIES_TO_END /* as AWAITS_COPIES; then it ends, also if the caller has gone meanwhile */
};

/* A wait of a request about the session with this id; `waker` is called once. NULL: it need not
 * wait, or there is no memory for it: it is answered as it can be. */
struct session_wait *service_session_await(const struct service *service,
                                           const struct caller *caller, const char *id,
                                           enum awaits awaits, const struct waker *waker);

/* A wait for a session that service_session_begin() gave. `may_return`: its maker can ask for it
 * again. NULL, with *err: no memory; the session has been ended for that. */
struct session_wait *service_session_await_new(struct session *session, bool may_return,
                                               const struct waker *waker, error *err);
struct session *session_wait_session(const struct session_wait *wait);

/* Frees it. A new session that is still being built and whose maker hung up (`is_abandoned`) before
 * it was told of it ends, unless it may return: it has no owner. */
void session_wait_done(struct session_wait *wait, bool is_abandoned);

/* May its maker be told of it? When it stands, or does not; of a branch, when what it will be is
 * fixed. */
bool service_session_is_made(const struct session *session);
/* Fails  with why it has ended. */
int service_session_check_made(const struct session *session, error *err);
