/* service_observe.h - the log, and the accounting of event-loop time, for doors. */
#pragma once

#include "engine/service/service.h"
#include "model/log_events.h"

#include <stdint.h>

/* Writes a log line: the caller of the request, one more field (`name` NULL: none), the cause. */
void service_log_warning(const struct caller *caller, enum log_event event, const char *name,
                         const char *value, const char *cause);
/* Counts a request that was answered with 401 or 403, and logs it: 20 at once and then one per
 * second, so that no client fills the log. `path` is the route's and has nothing of the request. */
struct refused_request {
    unsigned status;
    const char *method, *path;
    bool is_remote;
};
void service_log_refusal(const struct caller *caller, const struct refused_request *request);
void service_log_debug(enum log_event event, const char *name, const char *value);

/* What the event loop does for a door. */
enum service_work { WORK_HTTP, WORK_REQUEST, WORK_PORT };
struct service_work_before {
    unsigned cause;
    const char *what;
};

/* The loop's time from here on is counted for this work: engine/observe/loop_monitor.h. `what` may
 * be NULL and must stay valid. */
struct service_work_before service_work_enter(enum service_work work, const char *what);
void service_work_leave(struct service_work_before before);

/* If several keys send more requests than the event loop can serve, each key gets the same time
 * (engine/schedule/loop_share.h). All callers without an account share one part. */
void service_request_asks(const struct service *service, const struct caller *caller);
bool service_request_is_before(const struct service *service, const struct caller *caller,
                               const struct caller *other);
/* Gives  the charge in us. service_request_used() replaces it by the time that the handler took. */
int64_t service_request_begins(const struct service *service, const struct caller *caller);
void service_request_used(const struct service *service, const struct caller *caller,
                          int64_t charged_us, int64_t used_us);
