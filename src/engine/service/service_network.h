/* service_network.h - network use of sandboxes: how often each rule of each policy was used, and
 * connections as they begin, end and are refused. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

enum { NETWORK_RULE_SIZE = 768, CONNECTIONS_KEPT = 512 };

struct policy;

/* A policy with network rules, and its counts since the daemon began. */
struct network_use {
    const char *policy;
    uint64_t refused;        /* connections that no rule allowed */
    int64_t last_refused_ms; /* since 1970; 0: never */
    unsigned rule_count;
    const struct service *service; /* private, as all below */
    const struct policy *of;
};

struct network_rule_use {
    char rule[NETWORK_RULE_SIZE];
    const char *set;               /* the set that the rule belongs to; NULL: none */
    uint64_t connections, refused; /* ended; refused: allowed by the rule, but failed */
    uint64_t sent, received;       /* bytes */
    int64_t last_ms;               /* since 1970; 0: never */
};

void service_each_network_use(const struct service *service,
                              void (*each)(void *context, const struct network_use *use),
                              void *context);
void network_use_rule(const struct network_use *use, unsigned index,
                      struct network_rule_use *ret_rule);

struct connection_watch;

struct connection_query {
    const char *source; /* id of a run or session; NULL: any */
    bool sees_all;      /* connections of all tenants: needs an admin */
    bool follows;       /* wait for new ones after the old ones */
    uint64_t last;      /* how many old ones to begin with */
    bool has_seen;      /* begins after the one with this number, in place of `last` */
    uint64_t seen;
};

struct connection_event {
    uint64_t missed;  /* at most so many were dropped before they were read; if 0: */
    uint64_t number;  /* from 1 */
    const char *kind; /* "begun", "ended", "refused" */
    const char *json; /* borrowed until the door returns to the loop */
    size_t json_size;
};

/* NULL: it failed. Fails  ERR_FORBIDDEN  `sees_all` without admin; ERR_BAD_REQUEST  the source is
 * not an id */
struct connection_watch *service_watch_connections(const struct service *service,
                                                   const struct caller *caller,
                                                   const struct connection_query *query,
                                                   const struct waker *waker, error *err);
/* Returns  WATCH_EVENT, WATCH_LATER, WATCH_OVER (service_runs.h). */
int connection_watch_next(struct connection_watch *watch, struct connection_event *ret_event);
void connection_watch_close(struct connection_watch *watch);
