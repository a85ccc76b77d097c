/* service_processes.h - programs that callers start in a session: start (once per order), find,
 * write to, signal, and read their output as events. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"
#include "engine/service/service_orders.h"

#include <json.h>
#include <stddef.h>
#include <stdint.h>

struct process; /* valid until the door returns to the loop, and while a watch exists */
struct session;

enum {
    PROCESS_FEED_MAX = 1 << 20, /* bytes that a program has not read yet */
    PROCESS_SIZE_MAX = 1000,    /* rows and columns of a terminal */
};

struct process_order {
    struct order *order;         /* its key is noted just before the start */
    const char *session;         /* its id */
    struct json_object *request; /* ProcessRequest; borrowed; NULL: empty */
};

/* Starts a process with the environment of its session, if the policy lets this caller start
 * programs without approval. Gives  *ret_process, which may not run yet (service_process_look());
 * the earlier one if such an order has started it before, with order->order->is_replayed. Fails  as
 * service_session_enter(), service_order_find() and order_fail_forgotten(); ERR_BAD_REQUEST;
 * ERR_CONFLICT  the session does not run; ERR_POLICY; ERR_BUSY */
int service_process_start(struct service *service, const struct caller *caller,
                          const struct process_order *order, struct process **ret_process,
                          error *err);

/* Finds one by id, by "pid" as a number, or by tag; its session may have ended. Fails
 * ERR_NOT_FOUND. */
int service_process_find(const struct service *service, const struct session *session,
                         const char *name, struct process **ret_process, error *err);
/* The programs of a session, the newest first: those that run, or with `all` those that are still
 * known. `last` NULL: the first. Returns NULL after the last. */
const struct process *service_process_next(const struct service *service,
                                           const struct session *session,
                                           const struct process *last, bool all);

enum { PROCESS_LATER = 0, PROCESS_HAS_STARTED = 1 };
/* Fails  with the reason why it could not start. */
int service_process_look(const struct process *process, error *err);

/* Adds a Process of docs/api.md. */
void service_process_write(const struct process *process, struct bytes *out);

/* Writes to its input, and closes it if `is_last`. Fails  ERR_CONFLICT  it has ended, or its input
 * was closed; ERR_BUSY  it has not read enough yet; ERR_BAD_REQUEST  a terminal cannot be closed */
int service_process_feed(struct process *process, const struct bytes *data, bool is_last,
                         error *err);
/* `signal` is a name, such as SIGTERM or TERM, or a number. */
int service_process_signal(struct process *process, const char *signal, bool whole_group,
                           error *err);
int service_process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err);

enum process_event_kind {
    PROCESS_EVENT_STARTED,
    PROCESS_EVENT_STDOUT, /* for a terminal all output */
    PROCESS_EVENT_STDERR,
    PROCESS_EVENT_LOST, /* output was dropped before it was read */
    PROCESS_EVENT_PAUSED,
    PROCESS_EVENT_RESUMED,
    PROCESS_EVENT_END,
    PROCESS_EVENTS
};

struct process_event {
    enum process_event_kind kind;
    uint64_t offset;   /* after it: where another watch continues */
    uint64_t lost;     /* of LOST */
    const char *bytes; /* of STDOUT and STDERR, borrowed until the next call */
    size_t size;
};

/* A reader at a position in the output of a process. Nothing is dropped while it reads. */
struct process_watch;

/* NULL, with *err: no memory. `waker` is called when there may be more to read. */
struct process_watch *service_process_watch(struct process *process, uint64_t offset,
                                            const struct waker *waker, error *err);
void process_watch_close(struct process_watch *watch);
const struct process *process_watch_process(const struct process_watch *watch);

/* Adds the process as service_process_write() does, with the output that is kept as `stdout` and
 * `stderr`, and the number of dropped bytes as `lost_bytes`. The watch does not move. */
void process_watch_write(const struct process_watch *watch, struct bytes *out);

/* Returns 1 and an event; FLOW_LATER; FLOW_END after END was given. */
int process_watch_next(struct process_watch *watch, struct process_event *ret_event);
