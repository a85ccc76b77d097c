/* service_session_wait.h - waits for sessions: for a new one until it runs, and for requests that
 * come too early.
 *
 * A branch is answered as soon as its moment is fixed, before its sandbox has all the memory. Until
 * then requests to it wait, and so do requests that would end the parent while it is being read.
 * The deadlines of restore.h bound the wait: then the branch runs or has ended, and the request is
 * answered accordingly. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

struct session;
struct session_wait;

/* What a request about a session must wait for before it begins. */
enum awaits {
    AWAITS_NOTHING = 0,
    AWAITS_STANDING, /* until a branch has all of its memory and files */
    AWAITS_COPIES,   /* until no branch is reading it */
    AWAITS_BOTH,
    AWAITS_COPIES_TO_END /* as AWAITS_COPIES; then it is ended, also if the caller hung up */
};

/* A wait for the session with this id; `waker` is called once. NULL: no wait is needed, or there is
 * no memory for one: the request is answered at once. */
struct session_wait *service_session_await(const struct service *service,
                                           const struct caller *caller, const char *id,
                                           enum awaits awaits, const struct waker *waker);

/* A wait for a session from service_session_begin(). `may_return`: the caller can ask for it again.
 * NULL, with *err: no memory; the session was ended. */
struct session_wait *service_session_await_new(struct session *session, bool may_return,
                                               const struct waker *waker, error *err);
struct session *session_wait_session(const struct session_wait *wait);

/* Frees the wait. A new session that is still being built ends if its caller hung up before the
 * answer (`is_abandoned`), since it has no owner, unless the caller may return. */
void session_wait_done(struct session_wait *wait, bool is_abandoned);

/* May the caller be answered? When the session runs or has failed; a branch, when its moment is
 * fixed. */
bool service_session_is_made(const struct session *session);
/* Fails  with the reason why the session has ended. */
int service_session_check_made(const struct session *session, error *err);
