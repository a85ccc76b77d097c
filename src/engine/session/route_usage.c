/* route_usage.c - see route_usage.h. */
#include "engine/session/route_usage.h"

#include "base/list.h"

#include "engine/session/session_internal.h"

#include <stdlib.h>
#include <string.h>

static void add_records(struct route_usage *use, const struct connection_log *fresh)
{
    struct connection_log *kept = &use->connections;
    size_t room = ROUTE_USAGE_ROWS - kept->count;
    size_t count = fresh->count < room ? fresh->count : room;
    if (!kept->records || !fresh->records) /* no memory: they are only counted */
        count = 0;
    if (count > 0)
        memcpy(kept->records + kept->count, fresh->records, count * sizeof *kept->records);
    kept->count += count;
    kept->unlisted += fresh->unlisted - use->unlisted_seen + (fresh->count - count);
    if (fresh->failure)
        kept->failure = fresh->failure;
}

static void take(const struct session *session, struct route_usage *use)
{
    struct connection_log fresh;
    if (!session->route)
        return;
    egress_route_tell(session->route, use->seen, &fresh);
    size_t all = egress_route_record_count(session->route);
    uint64_t unlisted = fresh.unlisted;
    if (!fresh.records && all > use->seen)
        unlisted -= all - use->seen; /* no memory: they are only counted, once */
    add_records(use, &fresh);
    use->seen = all;
    use->unlisted_seen = unlisted;
    connection_log_done(&fresh);
}

void route_usage_begin(struct session *session, struct route_usage *use)
{
    struct connection_log lost_runs = { 0 };
    if (session->route) {
        egress_route_tell(session->route, egress_route_record_count(session->route), &lost_runs);
        use->connections.records = calloc(ROUTE_USAGE_ROWS, sizeof *use->connections.records);
    }
    use->seen = session->route ? egress_route_record_count(session->route) : 0;
    use->unlisted_seen = lost_runs.unlisted;
    use->next = session->route_usages;
    session->route_usages = use;
}

bool route_usage_ask(struct session *session, struct route_usage *use)
{
    if (!session->route || session->state == SESSION_ENDED)
        return false;
    use->ask = ++session->egress_route_asks;
    egress_route_ask(session->route);
    return use->ask != 0;
}

void route_usage_end(struct session *session, struct route_usage *use)
{
    take(session, use);
    use->ask = 0;
    (void) list_remove(session->route_usages, use, next);
}

void route_usage_done(struct route_usage *use)
{
    connection_log_done(&use->connections);
}

void route_usages_take(struct session *session)
{
    for (struct route_usage *use = session->route_usages; use; use = use->next) {
        take(session, use);
        use->seen = 0;
        use->unlisted_seen = 0;
    }
}

/* The next use whose answer has come; its callback ends it. */
static struct route_usage *next_answered(const struct session *session)
{
    struct route_usage *use = session->route_usages;
    while (use && (use->ask == 0 || use->ask > session->egress_route_answers))
        use = use->next;
    return use;
}

void route_usages_answer(struct session *session)
{
    struct route_usage *use;
    while ((use = next_answered(session))) {
        use->ask = 0;
        use->told(use->context);
    }
}

void route_usages_leave(struct session *session)
{
    route_usages_take(session);
    session->egress_route_answers = session->egress_route_asks;
    route_usages_answer(session);
}
