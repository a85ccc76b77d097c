/* service_network.c - see service_network.h. */
#include "engine/service/service_network.h"

#include "engine/catalog/policies.h"
#include "engine/network/traffic_stats.h"
#include "engine/run/queue.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service_runs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int) NETWORK_RULE_SIZE == (int) NETWORK_RULE_TEXT &&
                   (int) CONNECTIONS_KEPT == (int) TRAFFIC_KEPT,
               "as network_policy.h and traffic_stats.h have it");

void service_each_network_use(const struct service *service,
                              void (*each)(void *context, const struct network_use *use),
                              void *context)
{
    for (size_t i = 0; i < service->policies->count; i++) {
        const struct policy *policy = policies_at(service->policies, i);
        if (!policy || policy->network != POLICY_NETWORK_RULES)
            continue;
        const struct traffic_policy *used = traffic_find_policy(service->traffic, policy->name);
        const struct network_use use = { .policy = policy->name,
                                         .refused = used ? used->refused : 0,
                                         .last_refused_ms = used ? used->last_refused_ms : 0,
                                         .rule_count = policy->route.count,
                                         .service = service,
                                         .of = policy };
        each(context, &use);
    }
}

void network_use_rule(const struct network_use *use, unsigned index,
                      struct network_rule_use *ret_rule)
{
    const struct network_policy *route = &use->of->route;
    const struct network_rule *rule = &route->rules[index];
    *ret_rule =
        (struct network_rule_use){ .set = rule->from_set > 0 ? route->sets[rule->from_set - 1]
                                                             : NULL };
    network_rule_write(rule, ret_rule->rule);
    const struct traffic_rule *used =
        traffic_find(use->service->traffic, use->policy, ret_rule->rule);
    if (!used)
        return;
    ret_rule->connections = used->connections;
    ret_rule->refused = used->refused;
    ret_rule->sent = used->sent;
    ret_rule->received = used->received;
    ret_rule->last_ms = used->last_ms;
}

struct connection_watch {
    const struct service *service;
    const struct account *account; /* sees only its own; NULL: all */
    struct traffic *traffic;
    struct traffic_listener listener;
    struct waker waker;
    char source[TRAFFIC_SOURCE_SIZE]; /* "": any */
    bool follows;
    uint64_t at;   /* the last event that was given or skipped */
    uint64_t seen; /* its number for this watcher */
};

static void on_changed(void *context)
{
    const struct connection_watch *watch = context;
    watch->waker.woken(watch->waker.context);
}

/* The number of the event for this watcher; 0: it may not see it. */
static uint64_t number_of(const struct connection_watch *watch, const struct traffic_event *event)
{
    if (!event || !watch->account)
        return event ? event->number : 0;
    return account_sees(watch->account, event->account) ? event->own : 0;
}

static bool is_wanted(const struct connection_watch *watch, const struct traffic_event *event)
{
    return number_of(watch, event) > 0 &&
           (!watch->source[0] || strcmp(watch->source, event->source) == 0);
}

static uint64_t before_oldest(const struct connection_watch *watch)
{
    uint64_t last = watch->traffic->last;
    return last > TRAFFIC_KEPT ? last - TRAFFIC_KEPT : 0;
}

/* How many events were dropped before they were read: none are kept for a slow reader. */
static int say_missed(struct connection_watch *watch, uint64_t until,
                      struct connection_event *ret_event)
{
    ret_event->missed = until - watch->seen;
    watch->seen = until;
    return WATCH_EVENT;
}

int connection_watch_next(struct connection_watch *watch, struct connection_event *ret_event)
{
    *ret_event = (struct connection_event){ 0 };
    if (watch->at < before_oldest(watch))
        watch->at = before_oldest(watch);
    for (; watch->at < watch->traffic->last; watch->at++) {
        const struct traffic_event *event = traffic_event_at(watch->traffic, watch->at + 1);
        uint64_t number = number_of(watch, event);
        if (number <= watch->seen)
            continue;
        if (number > watch->seen + 1)
            return say_missed(watch, number - 1, ret_event);
        watch->seen = number;
        if (!is_wanted(watch, event))
            continue;
        watch->at++;
        ret_event->number = number;
        ret_event->kind = traffic_kind_name(event->kind);
        ret_event->json = event->json.data;
        ret_event->json_size = event->json.size;
        return WATCH_EVENT;
    }
    if (traffic_told(watch->traffic, watch->account) > watch->seen)
        return say_missed(watch, traffic_told(watch->traffic, watch->account), ret_event);
    return watch->follows && !watch->service->runs->is_closing ? WATCH_LATER : WATCH_OVER;
}

/* Moves back so that `count` of the wanted events come first. */
static void go_back(struct connection_watch *watch, uint64_t count)
{
    uint64_t found = 0;
    watch->seen = traffic_told(watch->traffic, watch->account);
    for (watch->at = watch->traffic->last; found < count && watch->at > before_oldest(watch);
         watch->at--) {
        const struct traffic_event *event = traffic_event_at(watch->traffic, watch->at);
        found += is_wanted(watch, event);
        if (number_of(watch, event) > 0)
            watch->seen = number_of(watch, event) - 1;
    }
}

struct connection_watch *service_watch_connections(const struct service *service,
                                                   const struct caller *caller,
                                                   const struct connection_query *query,
                                                   const struct waker *waker, error *err)
{
    const char *source = query->source ? query->source : "";
    if (query->sees_all && account_check_scope(caller->account, SCOPE_ADMIN, err) < 0)
        return NULL;
    if (strlen(source) >= TRAFFIC_SOURCE_SIZE) {
        (void) fail(err, ERR_BAD_REQUEST, "source must be a run's or session's id: run_… or ses_…");
        return NULL;
    }
    struct connection_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        (void) fail(err, ERR_SYSTEM, "no memory to watch connections");
        return NULL;
    }
    *watch = (struct connection_watch){ .service = service,
                                        .account = query->sees_all ? NULL : caller->account,
                                        .traffic = service->traffic,
                                        .listener = { .context = watch, .changed = on_changed },
                                        .waker = *waker,
                                        .follows = query->follows };
    (void) snprintf(watch->source, sizeof watch->source, "%s", source);
    go_back(watch, query->has_seen ? TRAFFIC_KEPT : query->last);
    if (query->has_seen) { /* the number may be from an earlier daemon */
        uint64_t told = traffic_told(watch->traffic, watch->account);
        watch->seen = query->seen < told ? query->seen : told;
    }
    traffic_listen(watch->traffic, &watch->listener);
    return watch;
}

void connection_watch_close(struct connection_watch *watch)
{
    traffic_unlisten(watch->traffic, &watch->listener);
    free(watch);
}
