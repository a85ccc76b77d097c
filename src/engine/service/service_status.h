/* service_status.h - the state of the daemon: slots, queue, and whether runs can begin. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct service_load {
    uint32_t slots, in_use; /* in_use: without parked ones */
    uint32_t idle, building;
    uint32_t active, queued, queued_max;
    uint32_t sessions; /* alive */
    bool is_closing;   /* no new runs are accepted */
};
void service_load(const struct service *service, struct service_load *ret_load);

/* Fails  ERR_UNAVAILABLE  no sandbox can be built; else as receipts_have_room(): no receipt can be
 * written. */
int service_check_health(const struct service *service, error *err);

/* Would a run of the default policy begin now, at once or after a short wait? Fails  as
 * service_check_health(); ERR_UNAVAILABLE: no template, no working sandbox of it, all slots or
 * places of the queue are taken, or the daemon is ending. */
int service_check_ready(const struct service *service, error *err);

/* Problems that do not keep runs from beginning, but that an operator should repair: one line
 * each. */
void service_each_warning(const struct service *service,
                          void (*each)(void *context, const char *text), void *context);

/* Parked sandboxes of one shape. */
struct pool_status {
    const char *template_name; /* NULL: the template was removed */
    int64_t set;               /* of imported libraries; -1: without an interpreter */
    const char *set_name;      /* in the template; NULL: none */
    uint32_t tenant;
    uint64_t memory_bytes;
    uint32_t idle, building, target;
    uint64_t per_second; /* recent leases per second */
};
void service_each_pool(const struct service *service,
                       void (*each)(void *context, const struct pool_status *pool), void *context);

/* What a key has used since the daemon began, or today. The daemon's owner comes first, without id,
 * name and tenant. */
struct key_status {
    const char *id, *name, *tenant; /* NULL: the owner */
    uint32_t queued, active, sessions, concurrency;
    uint64_t runs, refused, built, cpu_ms; /* built: runs for which none was parked */
    uint64_t queued_us;                    /* waiting time of its runs */
    uint64_t cpu_ms_today, cpu_seconds_per_day, log_bytes_today, log_bytes_per_day;
    uint32_t runs_per_minute;
    const uint64_t *ends;       /* runs by status: RUN_STATUSES numbers */
    const uint64_t *limit_hits; /* runs by limit that they reached: LIMITS numbers */
};
void service_each_key(const struct service *service,
                      void (*each)(void *context, const struct key_status *key), void *context);
