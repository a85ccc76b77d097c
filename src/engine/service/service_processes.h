/* service_processes.h - programs that callers start in a session: started once for an order, found,
 * fed, signalled, and what they print as events. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"
#include "engine/service/service_orders.h"

#include <json.h>
#include <stddef.h>
#include <stdint.h>

struct process; /* borrowed until the door returns to the loop, and as long as a watch stands */
struct session;

enum {
    PROCESS_FEED_MAX = 1 << 20, /* bytes that wait for a program to read them */
    PROCESS_SIZE_MAX = 1000,    /* rows and columns of a terminal */
};

struct process_order {
    struct order *order;         /* its key is noted as the last thing before it starts */
    const char *session;         /* its id */
    struct json_object *request; /* ProcessRequest; borrowed; NULL says nothing */
};

/* Starts one, with the environment of its session, where the policy lets this caller start programs
 * without approval. Gives  *ret_process, which may still have to start (service_process_look()):
 * the one that such an order has started before, with order->order->is_replayed. Fails  as
 * service_session_enter(), service_order_find() and order_fail_forgotten(); ERR_BAD_REQUEST;
 * ERR_CONFLICT  the session does not run; ERR_POLICY; ERR_BUSY */
int service_process_start(struct service *service, const struct caller *caller,
                          const struct process_order *order, struct process **ret_process,
                          error *err);

/* By id, by "pid" as a number, or by tag; its session may have ended. Fails  ERR_NOT_FOUND. */
int service_process_find(const struct service *service, const struct session *session,
                         const char *name, struct process **ret_process, error *err);
/* The programs of a session, the newest first: those that run, or `all` that are still known.
 * `last` NULL: the first. NULL: there are no more. */
const struct process *service_process_next(const struct service *service,
                                           const struct session *session,
                                           const struct process *last, bool all);

enum { PROCESS_LATER = 0, PROCESS_HAS_STARTED = 1 };
/* Fails  with why it could not be started. */
int service_process_look(const struct process *process, error *err);

/* Adds it as JSON: a Process of docs/api.md. */
void service_process_write(const struct process *process, struct bytes *out);

/* Types into it, and closes its input if this `is_last`.
 * Fails  ERR_CONFLICT  it has ended, or its input; ERR_BUSY  it has not read enough yet;
 *        ERR_BAD_REQUEST  a terminal is not closed */
int service_process_feed(struct process *process, const struct bytes *data, bool is_last,
                         error *err);
/* `signal` is a name, as SIGTERM or TERM, or a number. */
int service_process_signal(struct process *process, const char *signal, bool whole_group,
                           error *err);
int service_process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err);

enum process_event_kind {
    PROCESS_EVENT_STARTED,
    PROCESS_EVENT_STDOUT, /* of a terminal all that it prints */
    PROCESS_EVENT_STDERR,
    PROCESS_EVENT_LOST, /* bytes that were thrown away before they were read */
    PROCESS_EVENT_PAUSED,
    PROCESS_EVENT_RESUMED,
    PROCESS_EVENT_END,
    PROCESS_EVENTS
};

struct process_event {
    enum process_event_kind kind;
    uint64_t offset;   /* behind it: where another watch goes on */
    uint64_t lost;     /* of LOST */
    const char *bytes; /* of STDOUT and STDERR, borrowed until the next call */
    size_t size;
};

/* A reader at a position of what a process prints. While it reads, nothing is thrown away. */
struct process_watch;

/* NULL, with *err: no memory. `waker` is called when there may be something new. */
struct process_watch *service_process_watch(struct process *process, uint64_t offset,
                                            const struct waker *waker, error *err);
void process_watch_close(struct process_watch *watch);
const struct process *process_watch_process(const struct process_watch *watch);

/* Adds the process as service_process_write() does, with what is kept of its output as `stdout` and
 * `stderr`, and `lost_bytes`, which were thrown away. The watch stays where it is. */
void process_watch_write(const struct process_watch *watch, struct bytes *out);

/* Returns 1 and an event; FLOW_LATER; FLOW_END  END was given. */
int process_watch_next(struct process_watch *watch, struct process_event *ret_event);
