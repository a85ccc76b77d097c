/* session_create.c - POST /v1/sessions and …/branch: a session begins once for an Idempotency-Key,
 * and is answered when it was made. */
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "engine/service/service_session_wait.h"
#include "engine/service/service_sessions.h"

#include <microhttpd.h>

static void on_closed(struct exchange *exchange)
{
    session_wait_done(exchange->user, !exchange->is_answered);
}

static void answer_made(struct exchange *exchange, struct session *session)
{
    error err;
    if (service_session_check_made(session, &err) < 0)
        exchange_fail(exchange, &err);
    else
        session_answer(exchange, session, MHD_HTTP_CREATED);
}

static void await_session(struct exchange *exchange, struct session *session)
{
    error err;
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    if (service_session_is_made(session)) {
        answer_made(exchange, session);
        return;
    }
    bool may_return = exchange_header(exchange, "Idempotency-Key") != NULL;
    struct session_wait *wait = service_session_await_new(session, may_return, &waker, &err);
    if (!wait) {
        exchange_fail(exchange, &err);
        return;
    }
    exchange->user = wait;
    exchange->closed = on_closed;
    exchange_wait(exchange);
}

/* Gives  *ret_session; NULL: this request began a session before that has ended, and its tombstone
 * was answered. */
static int begin(struct exchange *exchange, const char *parent, struct json_object *json,
                 struct session **ret_session, error *err)
{
    struct order once;
    const struct session_order order = { .order = &once, .parent = parent, .request = json };
    exchange_order(exchange, json, &once);
    int begun =
        service_session_begin(exchange->service, &exchange->caller, &order, ret_session, err);
    exchange_answer_order(exchange, &once);
    if (begun == 0 && once.is_replayed && service_session_has_ended(*ret_session)) {
        session_answer(exchange, *ret_session, MHD_HTTP_CREATED);
        *ret_session = NULL;
    }
    return begun;
}

/* `parent` NULL: a new session, not a branch. */
static void post_new(struct exchange *exchange, const char *parent)
{
    error err;
    struct session *session = NULL;
    auto_json json = NULL;
    int done = 0;
    if (parent && exchange->body_bytes == 0)
        json = json_object_new_object();
    else
        done = json_reader_end(&exchange->body, &json, &err);
    if (done == 0) {
        json_reader_close(&exchange->body);
        done = begin(exchange, parent, json, &session, &err);
    }
    if (done < 0)
        exchange_fail(exchange, &err);
    else if (session)
        await_session(exchange, session);
}

void session_post(struct exchange *exchange)
{
    if (exchange->user)
        answer_made(exchange, session_wait_session(exchange->user));
    else
        post_new(exchange, NULL);
}

void session_post_branch(struct exchange *exchange)
{
    if (exchange->user)
        answer_made(exchange, session_wait_session(exchange->user));
    else if (exchange_tombstone(exchange))
        post_new(exchange, exchange->parameters[0]);
}
