/* service_observe.c - see service_observe.h. */
#include "engine/service/service_observe.h"

#include "base/clock.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "engine/observe/metrics.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service_callers.h"

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

enum { REFUSALS_AT_ONCE = 20, REFUSAL_EVERY_MS = 1000 };

/* Takes one from the token bucket, which gains one per second. */
static bool may_tell_refusal(void)
{
    static int64_t left = REFUSALS_AT_ONCE, since_ms;
    int64_t fresh = (now_ms() - since_ms) / REFUSAL_EVERY_MS;
    if (fresh > 0) {
        left = left + fresh < REFUSALS_AT_ONCE ? left + fresh : REFUSALS_AT_ONCE;
        since_ms += fresh * REFUSAL_EVERY_MS;
    }
    return left > 0 && left-- > 0;
}

void service_log_refusal(const struct caller *caller, const struct refused_request *request)
{
    static int64_t missed;
    bool is_known = caller->account != NULL;
    metric_add(request->status == 401 ? METRIC_UNAUTHORIZED : METRIC_FORBIDDEN, 0, 1);
    if (!may_tell_refusal()) {
        missed++;
        return;
    }
    log_event(ACCESS_REFUSED, COUNT("status", request->status), TEXT("method", request->method),
              TEXT("path", request->path), TEXT("by", request->is_remote ? "tcp" : "unix"),
              TEXT("key", is_known ? service_key_id(caller) : "none"),
              TEXT("tenant", is_known ? service_tenant(caller) : "none"),
              TEXT("request", caller->request_id), COUNT("missed", missed));
    missed = 0;
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

static struct loop_share *share_of(const struct service *service, const struct caller *caller)
{
    return caller->account ? &caller->account->requests : &service->accounts->anonymous;
}

void service_request_asks(const struct service *service, const struct caller *caller)
{
    loop_share_asks(share_of(service, caller), service->accounts->loop_clock_us);
}

bool service_request_is_before(const struct service *service, const struct caller *caller,
                               const struct caller *other)
{
    return loop_share_is_before(share_of(service, caller), share_of(service, other));
}

int64_t service_request_begins(const struct service *service, const struct caller *caller)
{
    return loop_share_begins(share_of(service, caller), &service->accounts->loop_clock_us);
}

void service_request_used(const struct service *service, const struct caller *caller,
                          int64_t charged_us, int64_t used_us)
{
    loop_share_used(share_of(service, caller), charged_us, used_us);
}
