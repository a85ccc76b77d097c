/* service_session_wait.c - see service_session_wait.h. */
#include "engine/service/service_session_wait.h"

#include "engine/session/branch.h"
#include "engine/session/session_registry.h"

#include <stdlib.h>

struct session_wait {
    struct session *session; /* NULL: its waker was called */
    struct session_listener listener;
    struct waker waker;
    enum awaits awaits;
    bool is_new, may_return;
};

bool service_session_is_made(const struct session *session)
{
    return session_state(session) != SESSION_STARTING || branch_is_fixed(session);
}

int service_session_check_made(const struct session *session, error *err)
{
    return session_check_alive(session, err);
}

static struct session_wait *wait_new(struct session *session, const struct waker *waker)
{
    struct session_wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return NULL;
    wait->session = session;
    wait->waker = *waker;
    wait->listener.context = wait;
    return wait;
}

void session_wait_done(struct session_wait *wait, bool is_abandoned)
{
    struct session *session = wait->session;
    error why;
    if (session)
        session_unlisten(session, &wait->listener);
    if (session && wait->is_new && session_state(session) == SESSION_STARTING && is_abandoned &&
        !wait->may_return) {
        (void) fail(&why, ERR_CONFLICT, "its caller hung up before the answer");
        session_end(session, END_DELETED, &why);
    }
    free(wait);
}

static void on_made(void *context, struct session *session)
{
    const struct session_wait *wait = context;
    if (service_session_is_made(session))
        wait->waker.woken(wait->waker.context);
}

struct session_wait *service_session_await_new(struct session *session, bool may_return,
                                               const struct waker *waker, error *err)
{
    struct session_wait *wait = wait_new(session, waker);
    if (!wait) {
        (void) fail(err, ERR_SYSTEM, "no memory to wait for a session");
        session_end(session, END_FAILED, err);
        return NULL;
    }
    wait->is_new = true;
    wait->may_return = may_return;
    wait->listener.changed = on_made;
    session_listen(session, &wait->listener);
    return wait;
}

struct session *session_wait_session(const struct session_wait *wait)
{
    return wait->session;
}

static bool has_to_wait(const struct session *session, enum awaits awaits)
{
    bool is_filling = session_state(session) == SESSION_STARTING && session_is_branch(session);
    bool needs_all = awaits == AWAITS_STANDING || awaits == AWAITS_BOTH;
    bool ends_it =
        awaits == AWAITS_COPIES || awaits == AWAITS_COPIES_TO_END || awaits == AWAITS_BOTH;
    return (needs_all && is_filling) || (ends_it && (session_holds(session) & SESSION_MUST_LIVE));
}

static void on_changed(void *context, struct session *session)
{
    struct session_wait *wait = context;
    if (has_to_wait(session, wait->awaits))
        return;
    session_unlisten(session, &wait->listener);
    wait->session = NULL;
    wait->waker.woken(wait->waker.context);
}

struct session_wait *service_session_await(const struct service *service,
                                           const struct caller *caller, const char *id,
                                           enum awaits awaits, const struct waker *waker)
{
    struct session *entered;
    error err;
    struct session *session = sessions_find(service->sessions, caller->account, id);
    if (!session || !has_to_wait(session, awaits))
        return NULL;
    struct session_wait *wait = wait_new(session, waker);
    if (!wait)
        return NULL;
    wait->awaits = awaits;
    wait->listener.changed = on_changed;
    session_listen(session, &wait->listener);
    /* only for a caller that may end it */
    if (awaits == AWAITS_COPIES_TO_END &&
        sessions_enter(service->sessions, caller->account, id, &entered, &err) == 0)
        session_end_once_read(session);
    return wait;
}
