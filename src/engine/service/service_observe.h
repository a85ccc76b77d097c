/* service_observe.h - what a door has for the log, and its turns of the event loop. */
#pragma once

#include "engine/service/service.h"
#include "model/log_events.h"

#include <stdint.h>

/* One line of the log: of whose request, one fact more (`name` NULL: none), the cause. */
void service_log_warning(const struct caller *caller, enum log_event event, const char *name,
                         const char *value, const char *cause);
/* A request that was answered with 401 or 403 is counted, and told in the log: 20 at once and then
 * one a second, so that no client fills it. `path` is the route's, which holds nothing of the
 * request. */
struct refused_request {
    unsigned status;
    const char *method, *path;
    bool is_remote;
};
void service_log_refusal(const struct caller *caller, const struct refused_request *request);
void service_log_debug(enum log_event event, const char *name, const char *value);

/* What a door makes the event loop do. */
enum service_work { WORK_HTTP, WORK_REQUEST, WORK_PORT };
struct service_work_before {
    unsigned cause;
    const char *what;
};

/* From here on the loop's time is spent on it: engine/observe/loop_monitor.h. `what`, which may be
 * NULL, must not go away. */
struct service_work_before service_work_enter(enum service_work work, const char *what);
void service_work_leave(struct service_work_before before);

/* The event loop serves requests of several keys in turns, each key for the same time, where they
 * ask for more than there is (engine/schedule/loop_share.h). A caller without an account shares
 * with all such callers. */
void service_request_asks(const struct service *service, const struct caller *caller);
bool service_request_is_before(const struct service *service, const struct caller *caller,
                               const struct caller *other);
/* Gives  what it was charged, in us, for service_request_used(): what its handler has taken. */
int64_t service_request_begins(const struct service *service, const struct caller *caller);
void service_request_used(const struct service *service, const struct caller *caller,
                          int64_t charged_us, int64_t used_us);
