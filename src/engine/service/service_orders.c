/* service_orders.c - see service_orders.h. */
#include "engine/service/service_orders.h"

#include "engine/audit/audit_log.h"
#include "engine/run/lost_runs.h"
#include "engine/schedule/accounts.h"
#include "engine/store/idempotency.h"

#include <string.h>

_Static_assert((int) ORDER_DIGEST_SIZE == (int) IDEMPOTENCY_DIGEST_SIZE &&
                   (int) ORDER_ID_SIZE == (int) IDEMPOTENCY_ID_SIZE,
               "as idempotency.h has it");

static struct idempotency_entry entry_of(const struct caller *caller, const struct order *order)
{
    struct idempotency_entry entry = { .caller = caller->account->key.id,
                                       .tenant = caller->account->key.tenant,
                                       .key = order->key };
    memcpy(entry.digest, order->digest, sizeof entry.digest);
    return entry;
}

int service_order_find(struct service *service, const struct caller *caller, struct order *order,
                       error *err)
{
    struct idempotency_entry entry = entry_of(caller, order);
    struct replayed known;
    if (!order->key)
        return ORDER_NEW;
    if (idempotency_check_key(order->key, err) < 0)
        return -1;
    int result = idempotency_find(service->idempotency, &entry, &known, err);
    order->is_elsewhere = result < 0 && err->code == ERR_UNAVAILABLE;
    if (result != IDEMPOTENCY_KNOWN)
        return result < 0 ? -1 : ORDER_NEW;
    memcpy(order->id, known.id, sizeof order->id);
    order->is_of_earlier = known.is_of_earlier;
    order->is_of_boot = known.is_of_boot;
    order->log_size = known.log_size;
    return ORDER_KNOWN;
}

int service_order_keep(struct service *service, const struct caller *caller,
                       const struct order *order, const char *id, error *err)
{
    if (!order->key)
        return 0;
    struct idempotency_entry entry = entry_of(caller, order);
    struct replayed begun = { .log_size = ledger_size(receipts_ledger(service->receipts)) };
    memcpy(begun.id, id, strnlen(id, sizeof begun.id - 1));
    return idempotency_keep(service->idempotency, &entry, &begun, err);
}

void service_order_drop(struct service *service, const struct order *order)
{
    if (order->key)
        idempotency_drop_last(service->idempotency);
}

/* After a power cut it is not known what reached the disk in the last moments: a run without a
 * record may have run. */
bool service_order_never_began(const struct service *service, const struct order *order)
{
    return order->is_of_earlier && order->is_of_boot &&
           lost_runs_never_began(service->lost_runs, order->id, order->log_size);
}

int order_fail_forgotten(const struct order *order, error *err)
{
    return fail(err, ERR_CONFLICT,
                "%s, which this Idempotency-Key has begun, has ended, and its result is not kept; "
                "use a new key to run it again",
                order->id);
}
