/* session_way.c - the way out of a session: one for its whole life, and for all that runs in it.
 * What passes while a cell runs is told by that cell, and by each that runs beside it, since nobody
 * can say whose it was; what passes in between is told by the next. */
#include "daemon/contexts.h"

enum { TELL_MS = 2000 /* for the last word of glovebox-egress */ };

bool session_has_way(const struct session *session)
{
    return session->spec.network == POLICY_NETWORK_RULES;
}

static void forget(struct session *session, const struct run *run)
{
    struct run **place = &session->first_untold;
    while (*place && *place != run)
        place = &(*place)->next_queued;
    if (*place)
        *place = run->next_queued;
}

static void conclude(struct session *session, struct run *run)
{
    forget(session, run);
    run->next_queued = NULL;
    run->cell->session = NULL;
    way_tell(session->way, run->cell->records_told, &run->story);
    session->records_told = way_record_count(session->way);
    if (--session->cells_running == 0) {
        way_forget(session->way);
        session->records_told = 0;
    }
    cell_conclude(run);
}

static void on_told(void *context)
{
    struct session *session = context;
    if (session->first_untold)
        conclude(session, session->first_untold);
}

int session_open_way(struct session *session, error *err)
{
    struct way_terms terms = { .order = { session->id, session->account, session->spec.policy,
                                          session->spec.way },
                               .told = on_told,
                               .context = session };
    terms.sockets.count = sandbox_take_sockets(session->sandbox, terms.sockets.list);
    if (terms.sockets.count == 0)
        return WAY_IS_AWAITED;
    return way_keep(session->sessions->runs->network, &terms, &session->way, err);
}

void session_close_way(struct session *session)
{
    while (session->first_untold)
        conclude(session, session->first_untold);
    way_free(session->way);
    session->way = NULL;
}

void session_way_begins(struct session *session, struct run *run)
{
    if (!session->way)
        return;
    session->cells_running++;
    run->cell->session = session;
    run->cell->records_told = session->records_told;
}

bool session_way_ends(struct session *session, struct run *run)
{
    if (run->cell->session != session)
        return true;
    if (session->state != SESSION_RUNNING) {
        conclude(session, run);
        return false;
    }
    struct run **end = &session->first_untold;
    while (*end)
        end = &(*end)->next_queued;
    *end = run;
    run->state = RUN_COLLECTING;
    run->state_ends = deadline_in(TELL_MS);
    way_ask(session->way);
    return false;
}

void session_way_is_late(struct run *run)
{
    conclude(run->cell->session, run);
}
