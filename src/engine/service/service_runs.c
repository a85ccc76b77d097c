/* service_runs.c - begins runs, each once, and lists them; service_watch.c follows one. */
#include "engine/service/service_runs.h"

#include "engine/run/lost_runs.h"
#include "engine/run/run.h"
#include "engine/service/service_watch_internal.h"

#include <string.h>

struct oneshot_starter {
    struct run_starter starter;
    struct json_object *json; /* NULL: already taken */
};

static int begin_oneshot(struct run_starter *starter, const char *id, struct run **ret_run,
                         error *err)
{
    struct oneshot_starter *own = (struct oneshot_starter *) starter;
    struct json_object *json = own->json;
    struct run_request *request;
    own->json = NULL;
    if (request_read(json, &request, err) < 0)
        return -1;
    request->run = id;
    request->account = starter->caller->account;
    request->request_id = starter->caller->request_id;
    request->claim = starter->caller->claim;
    return runs_submit(starter->service->runs, request, ret_run, err);
}

/* Gives  a watch of the run that the order has begun before; NULL: it is to begin now. */
static int find_begun(const struct run_starter *starter, struct order *order,
                      const struct watcher *watcher, struct watch **ret_watch, error *err)
{
    struct service *service = starter->service;
    const struct run *run = runs_find(service->runs, starter->caller->account, order->id);
    error unknown;
    if (run && run->verdict.status == RUN_PENDING_APPROVAL)
        return 0; /* it has not begun: it begins now */
    if (!run && service_order_never_began(service, order))
        return 0;
    order->is_replayed = true;
    *ret_watch = service_watch(service, starter->caller, order->id, watcher, run ? err : &unknown);
    if (*ret_watch)
        return 0;
    return run ? -1 : order_fail_forgotten(order, err);
}

int service_start_once(struct run_starter *starter, struct order *order,
                       const struct watcher *watcher, struct watch **ret_watch, error *err)
{
    struct service *service = starter->service;
    struct run *run = NULL;
    char id[RUN_ID_SIZE];
    *ret_watch = NULL;
    int result = service_order_find(service, starter->caller, order, err);
    if (result == ORDER_KNOWN)
        result = find_begun(starter, order, watcher, ret_watch, err);
    if (result < 0 || *ret_watch)
        return result;
    run_choose_id(id);
    if (service_order_keep(service, starter->caller, order, id, err) < 0)
        return -1;
    result = starter->begin(starter, id, &run, err);
    if (result < 0 || run->verdict.status == RUN_PENDING_APPROVAL)
        service_order_drop(service, order); /* it has not begun */
    if (result < 0)
        return -1;
    *ret_watch = watch_open(run, watcher, err);
    if (*ret_watch)
        return 0;
    run_cancel(run);
    return -1;
}

int service_run(struct service *service, const struct caller *caller, struct run_order *order,
                struct watch **ret_watch, error *err)
{
    struct oneshot_starter own = { { begin_oneshot, service, caller }, order->json };
    int result = service_start_once(&own.starter, &order->order, &order->watcher, ret_watch, err);
    (void) json_object_put(own.json);
    order->json = NULL;
    return result;
}

struct watch *service_watch(struct service *service, const struct caller *caller, const char *id,
                            const struct watcher *watcher, error *err)
{
    struct run *run = runs_find(service->runs, caller->account, id);
    if (run)
        return watch_open(run, watcher, err);
    struct bytes result = { 0 };
    if (lost_runs_result(service->lost_runs, caller->account, id, &result, err) == 0)
        return watch_open_lost(id, &result, err);
    bytes_done(&result);
    return NULL;
}

/* How a run ended, or its state. */
static const char *status_of(const struct run *run)
{
    return run->state == RUN_DONE ? outcome_status_name(run->verdict.status)
                                  : run_state_name(run_state_shown(run));
}

static int check_status(const char *status, error *err)
{
    if (!status)
        return 0;
    for (enum run_state state = 0; state < RUN_DONE; state++)
        if (strcmp(run_state_name(state), status) == 0)
            return 0;
    for (enum run_status verdict = 0; verdict < RUN_STATUSES; verdict++)
        if (strcmp(outcome_status_name(verdict), status) == 0)
            return 0;
    return fail(err, ERR_BAD_REQUEST,
                "status '%.40s' does not exist; it is one of queued, building, loading, running, "
                "stopping, collecting, gating, ok, error, limit, denied, pending_approval, "
                "cancelled, lost",
                status);
}

static void list_run(const struct run_page *page, const struct run *run)
{
    bool is_over = run->state == RUN_DONE;
    struct run_row row = { .id = run->id,
                           .status = status_of(run),
                           .fault = is_over ? outcome_fault_name(run->verdict.fault) : NULL,
                           .is_over = is_over,
                           .created_ms = run->created_ms,
                           .took_ms = (run->done_us - run->submitted_us) / 1000 };
    page->each(page->context, &row);
}

int service_list_runs(const struct service *service, const struct caller *caller,
                      struct run_page *page, error *err)
{
    uint64_t last = 0;
    page->next = 0;
    if (check_status(page->status, err) < 0)
        return -1;
    for (const struct run *run = service->runs->newest; run; run = run->older) {
        if (run->number >= page->cursor || !account_sees(caller->account, run->account) ||
            (page->status && strcmp(status_of(run), page->status) != 0))
            continue;
        if (page->max == 0) {
            page->next = last;
            break;
        }
        list_run(page, run);
        last = run->number;
        page->max--;
    }
    return 0;
}
