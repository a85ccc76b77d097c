/* service_sessions.h - sessions: find, begin (once per order), branch, change, pause, end.
 *
 * Each request looks its session up; the pointer is valid until the door returns to the loop, and
 * while a wait of service_session_wait.h exists. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"
#include "engine/service/service_orders.h"

#include <json.h>
#include <stdint.h>

struct session;

/* Finds a session for use. Fails  ERR_NOT_FOUND; ERR_FORBIDDEN  the key may not use its policy;
 * ERR_CONFLICT  it has ended */
int service_session_enter(const struct service *service, const struct caller *caller,
                          const char *id, struct session **ret_session, error *err);
/* The same, also for sessions that have ended. */
int service_session_look(const struct service *service, const struct caller *caller, const char *id,
                         struct session **ret_session, error *err);

/* A new session. */
struct session_order {
    struct order *order;         /* its key is noted just before the beginning */
    const char *parent;          /* the session to branch; NULL: a new one */
    struct json_object *request; /* SessionRequest or BranchRequest; borrowed */
};

/* Gives  *ret_session, which may not run yet (service_session_wait.h); the earlier one if such an
 * order has begun it before, with order->order->is_replayed, ended or not. Fails  as
 * service_order_find() and order_fail_forgotten(); ERR_BAD_REQUEST; ERR_BUSY  as many sessions are
 * alive as the policy or this machine allows; of a branch also as service_session_enter(), and
 * ERR_CONFLICT  the parent does not run */
int service_session_begin(struct service *service, const struct caller *caller,
                          const struct session_order *order, struct session **ret_session,
                          error *err);

/* Counts, for the log, a use of the session with a signed URL. */
void service_session_count_signature(struct session *session);

/* Adds a Session of docs/api.md. */
void service_session_write(struct session *session, struct bytes *out);

const char *service_session_id(const struct session *session);
bool service_session_has_ended(const struct session *session);

/* Changes deadlines and metadata; takes the SessionChange. */
int service_session_change(struct session *session, struct json_object *change, error *err);

/* Fails  ERR_CONFLICT  the session does not run, or a cell does. */
int service_session_pause(struct session *session, bool files_only, error *err);
/* Fails  ERR_QUOTA  the key has used its processor time of the day */
int service_session_resume(struct session *session, error *err);
void service_session_delete(struct session *session);

/* A page of the sessions that the caller may see, the newest first. */
struct session_page {
    const char *state;    /* "ended", "all"; else: alive */
    const char *metadata; /* name=value&…: all must match; NULL: any */
    uint64_t limit;
    const char *next; /* cursor of the next page; NULL: none */

    struct session *at; /* private, as all below */
    const char *last;
};

/* `cursor` is `next` of the page before; NULL: begins with the newest. Fails  ERR_NOT_FOUND
 * unknown cursor. */
int service_sessions_page(const struct service *service, const struct caller *caller,
                          const char *cursor, struct session_page *page, error *err);
/* NULL: the page has ended. */
struct session *service_sessions_next(const struct caller *caller, struct session_page *page);
