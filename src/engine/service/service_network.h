/* service_network.h - what passes out of sandboxes: how often each rule of each policy is used, and
 * connections as they begin, end and are refused. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

enum { NETWORK_RULE_SIZE = 768, CONNECTIONS_KEPT = 512 };

struct policy;

/* A policy with network rules, since the daemon began. */
struct network_use {
    const char *policy;
    uint64_t refused;        /* what no rule allowed */
    int64_t last_refused_ms; /* since 1970; 0: never */
    unsigned rule_count;
    const struct service *service; /* private, as what follows */
    const struct policy *of;
};

struct network_rule_use {
    char rule[NETWORK_RULE_SIZE];
    const char *set;               /* that it comes from; NULL: none */
    uint64_t connections, refused; /* that have ended; that it allowed, and that failed */
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
    bool sees_all;      /* of all tenants, which takes an admin */
    bool follows;       /* else it is over behind those that have been */
    uint64_t last;      /* so many of those that have been come first */
    bool has_seen;      /* `last` does not matter: they come behind the one with the number */
    uint64_t seen;
};

struct connection_event {
    uint64_t missed;  /* so many at most have gone before they were read; else 0, and: */
    uint64_t number;  /* from 1 */
    const char *kind; /* "begun", "ended", "refused" */
    const char *json; /* borrowed until the door returns to the loop */
    size_t json_size;
};

/* NULL: it failed. Fails  ERR_FORBIDDEN  it would see all and is no admin; ERR_BAD_REQUEST  the
 * source is no id */
struct connection_watch *service_watch_connections(const struct service *service,
                                                   const struct caller *caller,
                                                   const struct connection_query *query,
                                                   const struct waker *waker, error *err);
/* Returns  WATCH_EVENT, WATCH_LATER, WATCH_OVER (service_runs.h). */
int connection_watch_next(struct connection_watch *watch, struct connection_event *ret_event);
void connection_watch_close(struct connection_watch *watch);
