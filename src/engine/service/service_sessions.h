/* service_sessions.h - sessions: found, begun once for an order, branched, changed, paused, ended.
 *
 * A session is found for each request anew; it is borrowed until the door returns to the loop, and
 * as long as a wait of service_session_wait.h stands. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"
#include "engine/service/service_orders.h"

#include <json.h>
#include <stdint.h>

struct session;

/* One that the caller is about to use.
 * Fails  ERR_NOT_FOUND; ERR_FORBIDDEN  its key may not use the policy; ERR_CONFLICT  it has ended
 */
int service_session_enter(const struct service *service, const struct caller *caller,
                          const char *id, struct session **ret_session, error *err);
/* The same, and those that have ended. */
int service_session_look(const struct service *service, const struct caller *caller, const char *id,
                         struct session **ret_session, error *err);

/* A new session. */
struct session_order {
    struct order *order;         /* its key is noted as the last thing before it begins */
    const char *parent;          /* that it is a branch of; NULL: it begins empty */
    struct json_object *request; /* SessionRequest or BranchRequest; borrowed */
};

/* Gives  *ret_session, which may still have to be awaited (service_session_wait.h): the one that
 * such an order has begun before, with order->order->is_replayed, ended or not.
 * Fails  as service_order_find() and order_fail_forgotten(); ERR_BAD_REQUEST; ERR_BUSY  as many as
 * the policy or this machine allows are alive; of a branch also as service_session_enter(), and
 * ERR_CONFLICT  the parent does not run */
int service_session_begin(struct service *service, const struct caller *caller,
                          const struct session_order *order, struct session **ret_session,
                          error *err);

/* Counts, for the log, a signature with which others use it. */
void service_session_count_signature(struct session *session);

/* Adds it as a Session of docs/api.md. */
void service_session_write(struct session *session, struct bytes *out);

const char *service_session_id(const struct session *session);
bool service_session_has_ended(const struct session *session);

/* Changes deadlines and metadata as a SessionChange asks, which is taken. */
int service_session_change(struct session *session, struct json_object *change, error *err);

/* Fails  ERR_CONFLICT  it does not run, or a cell does. */
int service_session_pause(struct session *session, bool files_only, error *err);
/* Fails  ERR_QUOTA  the processor time of its key's day is used up */
int service_session_resume(struct session *session, error *err);
void service_session_delete(struct session *session);

/* A page of the sessions that the caller may see, the newest first. */
struct session_page {
    const char *state;    /* "ended", "all"; else: those that are alive */
    const char *metadata; /* name=value&…: all must match; NULL: any */
    uint64_t limit;
    const char *next; /* cursor of the next page, once this one is full and there is more */

    struct session *at; /* private, as what follows */
    const char *last;
};

/* `cursor` is `next` of the page before; NULL: begins with the newest.
 * Fails  ERR_NOT_FOUND  there is no such cursor. */
int service_sessions_page(const struct service *service, const struct caller *caller,
                          const char *cursor, struct session_page *page, error *err);
/* NULL: the page is over. */
struct session *service_sessions_next(const struct caller *caller, struct session_page *page);
