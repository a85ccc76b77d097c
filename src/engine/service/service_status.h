/* service_status.h - how the daemon is: its slots, its queue, and whether runs can be started. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct service_load {
    uint32_t slots, in_use; /* in_use: without those that are prewarmed */
    uint32_t idle, building;
    uint32_t active, queued, queued_max;
    uint32_t sessions; /* alive */
    bool is_closing;   /* no new run is taken */
};
void service_load(const struct service *service, struct service_load *ret_load);

/* Fails  ERR_UNAVAILABLE  no sandbox can be made; else as receipts_have_room(): no receipt can be
 * written. */
int service_check_health(const struct service *service, error *err);

/* Whether a run of the default policy that comes now begins at once, or waits for a short time.
 * Fails  as service_check_health(); ERR_UNAVAILABLE: no template, no working sandbox of it, every
 * slot or place of the queue is taken, it is being stopped. */
int service_check_ready(const struct service *service, error *err);

/* What does not keep runs from beginning, and an operator should mend: one line each. */
void service_each_warning(const struct service *service,
                          void (*each)(void *context, const char *text), void *context);

/* Sandboxes that are built ahead of requests and are alike. */
struct pool_status {
    const char *template_name; /* NULL: it is gone */
    int64_t set;               /* of imported libraries; -1: no interpreter has been started */
    const char *set_name;      /* as the template calls it; NULL: none */
    uint32_t tenant;
    uint64_t memory_bytes;
    uint32_t idle, building, target;
    uint64_t per_second; /* how many are taken, of late */
};
void service_each_pool(const struct service *service,
                       void (*each)(void *context, const struct pool_status *pool), void *context);

/* What a key has used since the daemon began, or today; the owner of the daemon comes first, with
 * neither id nor name nor tenant. */
struct key_status {
    const char *id, *name, *tenant; /* NULL: it is the owner */
    uint32_t queued, active, sessions, concurrency;
    uint64_t runs, refused, built, cpu_ms; /* built: no sandbox was ready for them */
    uint64_t queued_us;                    /* that its runs have waited */
    uint64_t cpu_ms_today, cpu_seconds_per_day, log_bytes_today, log_bytes_per_day;
    uint32_t runs_per_minute;
    const uint64_t *ends;       /* RUN_STATUSES of them: runs that ended so */
    const uint64_t *limit_hits; /* LIMITS of them: runs that hit this limit */
};
void service_each_key(const struct service *service,
                      void (*each)(void *context, const struct key_status *key), void *context);
