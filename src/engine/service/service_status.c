/* service_status.c - see service_status.h. */
#include "engine/service/service_status.h"

#include "base/clock.h"
#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/catalog/policies.h"
#include "engine/catalog/templates.h"
#include "engine/run/queue.h"
#include "engine/run/run_plan.h"
#include "engine/schedule/accounts.h"
#include "engine/session/session_registry.h"

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
                                       .queued_max = runs->queued_max,
                                       .sessions = service->sessions->alive,
                                       .is_closing = runs->is_closing };
}

int service_check_health(const struct service *service, error *err)
{
    const struct runs *runs = service->runs;
    const struct pool *pool = runs->pool;
    if (pool->spawner->is_open && pool->slots == 0 && pool->stuck > 0)
        return fail(err, ERR_UNAVAILABLE,
                    "all %u sandbox slots hold processes that cannot be ended; the log has them as "
                    "sandbox.leftovers, and a slot is used again when they have ended",
                    pool->stuck);
    if (!pool->spawner->is_open || pool->slots == 0)
        return fail(err, ERR_UNAVAILABLE, "glovebox-spawner is not running; it is being restarted");
    return runs->receipts ? receipts_have_room(runs->receipts, err) : 0;
}

/* Checks the template of the default policy: it exists, and its last sandboxes could be built. */
static int check_template(const struct service *service, error *err)
{
    char name[POLICY_NAME_SIZE];
    const struct policy *policy = NULL;
    run_plan_default_policy(NULL, service->policies, service->templates, name);
    if (policies_find(service->policies, name, &policy, err) < 0)
        return fail(err, ERR_UNAVAILABLE, "there is no policy '%s'; set default_policy", name);
    int index = templates_find(service->templates, policy->template);
    const struct template_fault *fault = templates_fault(service->templates, policy->template);
    if (index < 0 && fault)
        return fail(err, ERR_UNAVAILABLE, "the default policy's template: %.400s",
                    fault->cause.text);
    if (index < 0)
        return fail(err, ERR_UNAVAILABLE,
                    "template %s of the default policy is not built; glovebox template build %s",
                    policy->template, policy->template);
    for_each(pool_class, service->runs->pool->pool_classes.list)
        if (pool_class->is_used && pool_class->failures > 0 && pool_class->idle == 0 &&
            pool_class->build.template == (uint32_t) index)
            return fail(err, ERR_UNAVAILABLE,
                        "the last %u sandboxes of template %s could not be built; see the log",
                        pool_class->failures, policy->template);
    return 0;
}

int service_check_ready(const struct service *service, error *err)
{
    struct service_load load;
    service_load(service, &load);
    if (load.is_closing)
        return fail(err, ERR_UNAVAILABLE, "gloveboxd is being stopped");
    if (service_check_health(service, err) < 0 || check_template(service, err) < 0)
        return -1;
    if (load.in_use >= load.slots)
        return fail(err, ERR_UNAVAILABLE, "every slot is taken: %u of %u", load.in_use, load.slots);
    return load.queued_max > 0 && load.queued >= load.queued_max
               ? fail(err, ERR_UNAVAILABLE, "the queue is full: %u runs wait", load.queued)
               : 0;
}

void service_each_warning(const struct service *service,
                          void (*each)(void *context, const char *text), void *context)
{
    policies_each_fault(service->policies, each, context);
    for_each(fault, service->templates->faults)
        if (fault->name[0])
            each(context, fault->cause.text);
}

void service_each_pool(const struct service *service,
                       void (*each)(void *context, const struct pool_status *pool), void *context)
{
    const struct pool_classes *classes = &service->runs->pool->pool_classes;
    const struct templates *templates = service->templates;
    for_each(pool_class, classes->list) {
        const struct spawn_build *build = &pool_class->build;
        const struct template *template = templates->list[build->template];
        bool is_forked = build->start == SPAWN_FORKED;
        const struct pool_status status = {
            .template_name = template ? template->name : NULL,
            .set = is_forked ? (int64_t) build->zygote : -1,
            .set_name = is_forked && template && build->zygote < template->set_count
                            ? template->sets[build->zygote].name
                            : NULL,
            .tenant = build->tenant,
            .memory_bytes = build->memory_bytes,
            .idle = pool_class->idle,
            .building = pool_class->building,
            .target = pool_class_target(classes, pool_class, (uint64_t) now_ms()),
            .per_second = (uint64_t) (pool_class->rate + 0.5),
        };
        if (pool_class->is_used)
            each(context, &status);
    }
}

static struct key_status status_of(const struct accounts *accounts, const struct account *account)
{
    const struct rate_quota quota = account_quota(accounts, account);
    const struct api_key *key = account->key.id[0] ? &account->key : NULL;
    return (struct key_status){ .id = key ? key->id : NULL,
                                .name = key ? key->name : NULL,
                                .tenant = key ? key->tenant : NULL,
                                .queued = account->turn.queued,
                                .active = account->turn.active,
                                .sessions = account->sessions,
                                .concurrency = account->turn.active_max,
                                .runs = account->runs,
                                .refused = account->refused,
                                .built = account->built,
                                .cpu_ms = account->cpu_ms,
                                .queued_us = account->queued_us,
                                .cpu_ms_today = account->rate.cpu_ms,
                                .cpu_seconds_per_day = quota.cpu_seconds_per_day,
                                .log_bytes_today = account->rate.log_bytes,
                                .log_bytes_per_day = quota.log_bytes_per_day,
                                .runs_per_minute = quota.runs_per_minute,
                                .ends = account->ends,
                                .limit_hits = account->limit_hits };
}

void service_each_key(const struct service *service,
                      void (*each)(void *context, const struct key_status *key), void *context)
{
    struct key_status status = status_of(service->accounts, &service->accounts->local);
    each(context, &status);
    for (const struct account *account = service->accounts->all; account; account = account->next) {
        status = status_of(service->accounts, account);
        each(context, &status);
    }
}
