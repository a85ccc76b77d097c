/* session_route.c - the network route of a session: one for its whole life, and for all that runs
 * in it. Connections during cells are reported by each of these cells, since they cannot be
 * attributed to one; connections in between by the next cell. */
#include "engine/network/trust_bundle.h"

#include "base/list.h"
#include "engine/session/contexts.h"
#include "engine/session/route_usage.h"
#include "engine/session/session_internal.h"

enum {
    ID_CERTIFICATES = 8, /* of the write; later frames are handled after it, so no wait is needed */
    LIFE_S = 30 * 24 * 3600, /* of certificates, if the policy has no bound for sessions */
    BOUND_MAX_S = 365 * 24 * 3600,
};

bool session_has_egress(const struct session *session)
{
    return session->plan.network == POLICY_NETWORK_RULES;
}

static void forget(struct session *session, const struct run *run)
{
    (void) list_remove(session->first_untold, run, next_queued);
}

static void conclude(struct session *session, struct run *run)
{
    forget(session, run);
    run->next_queued = NULL;
    run->cell->session = NULL;
    egress_route_tell(session->route, run->cell->records_told, &run->connections);
    session->records_told = egress_route_record_count(session->route);
    if (--session->cells_running == 0) {
        route_usages_take(session);
        egress_route_forget(session->route);
        session->records_told = 0;
    }
    run_finish(run); /* its context was released before */
}

static void on_told(void *context)
{
    struct session *session = context;
    session->egress_route_answers++;
    if (session->first_untold &&
        session->first_untold->cell->egress_route_ask <= session->egress_route_answers)
        conclude(session, session->first_untold);
    route_usages_answer(session);
}

static int write_certificates(struct session *session, const char *own, error *err)
{
    static const char path[] = "/" CERTIFICATES_PATH;
    auto_bytes text = { 0 };
    struct agent_frame frame = { .kind = AGENT_WRITE, .id = ID_CERTIFICATES };
    struct agent_write write = { .mode = 0444 };
    struct iovec head[2] = { { &write, sizeof write },
                             { (void *) (uintptr_t) path, sizeof path - 1 } };
    if (certificates_write(session->plan.template, own, &text, err) < 0)
        return -1;
    sandbox_send(session->sandbox, &frame, head, 2);
    frame.kind = AGENT_DATA;
    for (size_t at = 0; at < text.size; at += AGENT_PAYLOAD_MAX) {
        size_t left = text.size - at;
        struct iovec part = { text.data + at, left < AGENT_PAYLOAD_MAX ? left : AGENT_PAYLOAD_MAX };
        sandbox_send(session->sandbox, &frame, &part, 1);
    }
    frame.kind = AGENT_END;
    sandbox_send(session->sandbox, &frame, NULL, 0);
    sandbox_flush(session->sandbox);
    return 0;
}

/* Called at the beginning, and each time that glovebox-egress has restarted with new keys. */
static void on_certified(void *context, const char *certificate)
{
    struct session *session = context;
    bool is_new = session->state == SESSION_STARTING;
    error err;
    if (session->state == SESSION_ENDED || (!is_new && !certificate))
        return;
    if (!certificate)
        (void) fail(&err, ERR_UNAVAILABLE,
                    "glovebox-egress ended before the session began; try again");
    if (!certificate || write_certificates(session, certificate, &err) < 0)
        session_end(session, END_FAILED, &err);
    else if (is_new)
        session_ready(session);
}

/* As long as the policy allows, and more: a session does not age while it is paused. */
static uint32_t life_s(const struct session *session)
{
    uint64_t bound_ms = session->plan.policy->sessions.values[SESSIONS_AGE];
    uint64_t bound_s = bound_ms / 1000 < BOUND_MAX_S ? bound_ms / 1000 : BOUND_MAX_S;
    return (uint32_t) bound_s + LIFE_S;
}

int session_route_open(struct session *session, error *err)
{
    session->waits_for_past = session->past_route != NULL;
    if (session->past_route)
        return EGRESS_ROUTE_IS_AWAITED;
    struct egress_route_terms terms = { .order = { session->id, session->account,
                                                   session->plan.policy, session->plan.route },
                                        .life_s = life_s(session),
                                        .told = on_told,
                                        .certified = on_certified,
                                        .context = session,
                                        .used = session->route_used };
    terms.sockets.count = sandbox_take_sockets(session->sandbox, terms.sockets.list);
    if (terms.sockets.count == 0)
        return EGRESS_ROUTE_IS_AWAITED;
    if (egress_route_keep(session->sessions->runs->network, &terms, &session->route, err) < 0)
        return -1;
    return run_plan_intercepts(&session->plan) ? EGRESS_ROUTE_IS_AWAITED : 0;
}

void session_route_close(struct session *session)
{
    while (session->first_untold)
        conclude(session, session->first_untold);
    route_usages_leave(session);
    if (session->route || session->past_route)
        session->route_used = route_used(session->route ? session->route : session->past_route);
    egress_route_free(session->route);
    egress_route_free(session->past_route);
    session->route = session->past_route = NULL;
}

/* glovebox-egress has reported all connections of the old route: now the rest of the bytes is
 * known. */
static void on_past_ended(void *context)
{
    struct session *session = context;
    session->route_used = route_used(session->past_route);
    egress_route_free(session->past_route);
    session->past_route = NULL;
    if (session->waits_for_past)
        session_open_egress(session);
}

void session_route_detach(struct session *session)
{
    while (session->first_untold)
        conclude(session, session->first_untold);
    route_usages_leave(session);
    session->waits_for_past = false;
    session->past_route = session->route;
    session->route = NULL;
    if (session->past_route)
        egress_route_end(session->past_route, on_past_ended, session);
}

void session_route_begins(struct session *session, struct run *run)
{
    if (!session->route)
        return;
    session->cells_running++;
    run->cell->session = session;
    run->cell->records_told = session->records_told;
}

bool session_route_ends(struct session *session, struct run *run)
{
    if (run->cell->session != session)
        return true;
    if (session->state != SESSION_RUNNING) {
        conclude(session, run);
        return false;
    }
    list_append(session->first_untold, run, next_queued);
    run_set_state(run, RUN_COLLECTING);
    run->cell->egress_route_ask = ++session->egress_route_asks;
    egress_route_ask(session->route);
    return false;
}

void session_route_is_late(struct run *run)
{
    conclude(run->cell->session, run);
}
