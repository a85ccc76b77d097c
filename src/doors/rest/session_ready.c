/* session_ready.c - see session_ready.h. */
#include "doors/rest/session_ready.h"

#include "doors/rest/rest.h"
#include "engine/session/branch.h"

#include <stdlib.h>
#include <string.h>

struct early {
    struct session *session; /* NULL: it was told */
    struct session_listener listener;
};

static bool has_to_wait(const struct session *session, enum awaits awaits)
{
    bool is_filling = session->state == SESSION_STARTING && session->parent[0];
    bool needs_all = awaits == AWAITS_STANDING || awaits == AWAITS_BOTH;
    bool ends_it = awaits == AWAITS_COPIES || awaits == AWAITS_BOTH;
    return (needs_all && is_filling) || (ends_it && (session_holds(session) & SESSION_MUST_LIVE));
}

static void forget(struct exchange *exchange)
{
    struct early *early = exchange->user;
    if (early->session)
        session_unlisten(early->session, &early->listener);
    free(early);
    exchange->user = NULL;
    exchange->closed = NULL;
}

/* Who hangs up while he waits has not asked for it, but for the end of a session: that is as good
 * as done, and many do not stay for the answer. Only of who may end it. */
static void note_end(const struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct session *session;
    error err;
    if (strcmp(exchange->method, "DELETE") == 0 &&
        strcmp(exchange->route->path, "/v1/sessions/{id}") == 0 &&
        sessions_enter(service->sessions, exchange->caller.account, exchange->parameters[0],
                       &session, &err) == 0)
        session->delete_pending = true;
}

static void on_changed(void *context, struct session *session)
{
    struct exchange *exchange = context;
    struct early *early = exchange->user;
    if (has_to_wait(session, exchange->route->awaits))
        return;
    session_unlisten(session, &early->listener);
    early->session = NULL;
    exchange_wake(exchange);
}

static bool is_of_session(const struct route *route)
{
    static const char place[] = "/v1/sessions/{id}";
    return strncmp(route->path, place, sizeof place - 1) == 0;
}

bool session_is_early(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    if (!exchange->caller.account || !is_of_session(exchange->route))
        return false; /* who has no key comes by a token, which its route looks at */
    if (exchange->user)
        forget(exchange);
    struct session *session =
        sessions_find(service->sessions, exchange->caller.account, exchange->parameters[0]);
    if (!session || !has_to_wait(session, exchange->route->awaits))
        return false;
    struct early *early = calloc(1, sizeof *early);
    if (!early)
        return false; /* it is answered as it can be */
    early->session = session;
    early->listener = (struct session_listener){ .context = exchange, .changed = on_changed };
    session_listen(session, &early->listener);
    exchange->user = early;
    exchange->closed = forget;
    note_end(exchange);
    return true;
}
