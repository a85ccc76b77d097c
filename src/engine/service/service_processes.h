/* service_processes.h - programs that callers start in a session. */
#pragma once

#include "base/error.h"
#include "engine/process/processes.h"
#include "engine/service/service.h"
#include "engine/service/service_orders.h"

struct process_order {
    struct order *order;     /* found: its key is noted as the last thing before it starts */
    struct session *session; /* entered */
    struct process_request *request; /* borrowed; its variables are set here */
};

/* What a known order has started. Fails  ERR_CONFLICT  it is over and forgotten */
int service_process_of_order(const struct service *service, const struct session *session,
                             struct order *order, struct process **ret_process, error *err);

/* Starts one, with the environment of its session, where the policy lets this caller start programs
 * without approval. Gives *ret_process, as process_start().
 * Fails  ERR_CONFLICT  the session does not run; ERR_POLICY; else as process_start() */
int service_process_start(struct service *service, const struct caller *caller,
                          const struct process_order *order, struct process **ret_process,
                          error *err);
