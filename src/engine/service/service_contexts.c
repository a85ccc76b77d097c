/* service_contexts.c - see service_contexts.h. */
#include "engine/service/service_contexts.h"

#include "engine/session/contexts.h"
#include "engine/session/session_registry.h"

int service_context_create(struct session *session, struct json_object *request,
                           struct context **ret_context, error *err)
{
    struct context_request wanted;
    if (context_request_read(request, false, &wanted, err) < 0)
        return -1;
    return context_create(session, &wanted, ret_context, err);
}

int service_context_find(struct session *session, const char *id, struct context **ret_context,
                         error *err)
{
    return context_find(session, id, ret_context, err);
}

void service_context_write(const struct context *context, struct bytes *out)
{
    context_write(context, out);
}

void service_contexts_write(const struct session *session, struct bytes *out)
{
    session_write_contexts(session, out);
}

void service_context_remove(struct context *context)
{
    context_remove(context);
}

int service_context_restart(struct context *context, error *err)
{
    return context_restart(context, err);
}

int service_context_interrupt(struct context *context, bool *ret_interrupted, error *err)
{
    int result = context_interrupt(context, err);
    *ret_interrupted = result != CONTEXT_WAS_IDLE;
    return result < 0 ? -1 : 0;
}

int service_cell_begin(const struct service *service, const struct caller *caller,
                       const struct cell_order *order, struct run **ret_run, error *err)
{
    struct session *session = NULL;
    struct context *context = NULL;
    struct context_request wanted;
    if (context_request_read(order->request, true, &wanted, err) < 0)
        return -1;
    wanted.given->account = caller->account;
    wanted.given->run = order->id;
    wanted.given->claim = caller->claim;
    if (sessions_enter(service->sessions, caller->account, order->session, &session, err) == 0 &&
        context_find(session, order->context, &context, err) == 0)
        return context_run(context, &wanted, ret_run, err);
    context_request_done(&wanted);
    return -1;
}
