/* service_processes.c - see service_processes.h. */
#include "engine/service/service_processes.h"

#include "engine/session/contexts.h"
#include "engine/session/session_registry.h"

int service_process_of_order(const struct service *service, const struct session *session,
                             struct order *order, struct process **ret_process, error *err)
{
    *ret_process = NULL;
    if (!order->is_of_earlier) /* else another may be called so */
        *ret_process = process_find(service->processes, session, order->id);
    order->is_replayed = *ret_process != NULL;
    return *ret_process ? 0 : order_fail_forgotten(order, err);
}

static int start_once(struct service *service, const struct caller *caller,
                      const struct process_order *order, struct process **ret_process, error *err)
{
    char id[PROCESS_ID_SIZE];
    process_next_id(service->processes, id);
    if (service_order_keep(service, caller, order->order, id, err) < 0)
        return -1;
    if (process_start(service->processes, order->session, order->request, ret_process, err) == 0)
        return 0;
    service_order_drop(service, order->order);
    return -1;
}

int service_process_start(struct service *service, const struct caller *caller,
                          const struct process_order *order, struct process **ret_process,
                          error *err)
{
    struct session *session = order->session;
    struct variables variables = { 0 };
    int done = session_check_running(session, err);
    if (done == 0)
        done = session_check_approval(session, caller->account, service->approvals, err);
    if (done == 0)
        done = run_plan_environment(&session->plan, session->request.place, NULL, &variables, err);
    order->request->account = caller->account;
    order->request->variables = &variables.text;
    if (done == 0)
        done = start_once(service, caller, order, ret_process, err);
    order->request->variables = NULL;
    bytes_done(&variables.text);
    return done == 0 ? 0 : -1;
}
