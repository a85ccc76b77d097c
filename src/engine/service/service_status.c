/* service_status.c - see service_status.h. */
#include "engine/service/service_status.h"

#include "engine/audit/audit_log.h"
#include "engine/run/queue.h"

void service_load(const struct service *service, struct service_load *ret_load)
{
    const struct runs *runs = service->runs;
    const struct pool *pool = runs->pool;
    uint32_t ahead = pool->idle + pool->building;
    *ret_load = (struct service_load){ .slots = pool->slots,
                                       .in_use = pool->in_use > ahead ? pool->in_use - ahead : 0,
                                       .idle = pool->idle,
                                       .building = pool->building,
                                       .active = runs->active,
                                       .queued = runs->queued,
                                       .queued_max = runs->queued_max };
}

int service_check_health(const struct service *service, error *err)
{
    const struct runs *runs = service->runs;
    if (!runs->pool->spawner->is_open || runs->pool->slots == 0)
        return fail(err, ERR_UNAVAILABLE, "glovebox-spawner is not there; it starts by itself");
    return runs->receipts ? receipts_have_room(runs->receipts, err) : 0;
}
