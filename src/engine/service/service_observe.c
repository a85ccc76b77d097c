/* service_observe.c - see service_observe.h. */
#include "engine/service/service_observe.h"

#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"

void service_log_warning(const struct caller *caller, enum log_event event, const char *name,
                         const char *value, const char *cause)
{
    if (name)
        log_fields(event, LOG_WARNING,
                   LOG_FIELDS(TEXT("request", caller->request_id), TEXT(name, value),
                              TEXT("cause", cause)));
    else
        log_fields(event, LOG_WARNING,
                   LOG_FIELDS(TEXT("request", caller->request_id), TEXT("cause", cause)));
}

void service_log_debug(enum log_event event, const char *name, const char *value)
{
    log_fields(event, LOG_DEBUG, LOG_FIELDS(TEXT(name, value)));
}

struct service_work_before service_work_enter(enum service_work work, const char *what)
{
    static const enum loop_cause causes[] = {
        [WORK_HTTP] = CAUSE_HTTP, [WORK_REQUEST] = CAUSE_REQUEST, [WORK_PORT] = CAUSE_NETWORK
    };
    struct loop_place before = loop_enter(causes[work], what);
    return (struct service_work_before){ before.cause, before.what };
}

void service_work_leave(struct service_work_before before)
{
    loop_leave((struct loop_place){ before.cause, before.what });
}
