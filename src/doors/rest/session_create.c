/* session_create.c - POST /v1/sessions and …/branch: a session is begun once for an
 * Idempotency-Key, and answered when it stands. */
#include "doors/rest/idempotency_key.h"
#include "doors/rest/rest.h"
#include "engine/session/branch.h"
#include "engine/session/checkpoints.h"
#include "engine/session/processes.h"
#include "engine/session/session_registry.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an exchange holds while its session is being built. */
struct wait {
    struct session *session;
    struct session_listener listener;
    bool may_return; /* its maker has a key to ask for it again */
};

/* A branch is answered for while it is still being filled: rest/early.c. */
static bool can_be_told(const struct session *session)
{
    return session->state != SESSION_STARTING || branch_is_fixed(session);
}

static void on_changed(void *context, struct session *session)
{
    if (can_be_told(session))
        exchange_wake(context);
}

/* A session whose maker has gone before he was told of it belongs to nobody. */
static void leave(struct exchange *exchange)
{
    struct wait *wait = exchange->user;
    error why;
    session_unlisten(wait->session, &wait->listener);
    if (wait->session->state == SESSION_STARTING && !exchange->is_answered && !wait->may_return) {
        (void) fail(&why, ERR_CONFLICT, "its maker hung up before it was told of it");
        session_end(wait->session, END_DELETED, &why);
    }
    free(wait);
}

/* Takes the JSON. */
static int create(struct exchange *exchange, struct json_object *json, struct once *once,
                  struct session **ret_session, error *err)
{
    const struct service *service = exchange->service;
    char id[SESSION_ID_SIZE];
    struct session_request request;
    session_choose_id(id);
    if (session_request_read(json, true, &request, err) < 0)
        return -1;
    request.place->account = exchange->caller.account;
    request.id = id;
    if (once_keep(exchange, once, id, err) < 0) {
        session_request_done(&request);
        return -1;
    }
    if (session_create(service->sessions, &request, NULL, ret_session, err) == 0)
        return 0;
    once_drop(exchange, once);
    return -1;
}

static void answer_built(struct exchange *exchange, struct session *session)
{
    if (session->state == SESSION_ENDED)
        exchange_fail(exchange, &session->why);
    else
        session_answer(exchange, session, MHD_HTTP_CREATED);
}

/* Answers when the session stands, or does not; of a branch, when what it will be is fixed. */
static void await_session(struct exchange *exchange, struct session *session)
{
    error err;
    if (can_be_told(session)) {
        answer_built(exchange, session);
        return;
    }
    struct wait *wait = calloc(1, sizeof *wait);
    if (!wait) {
        (void) fail(&err, ERR_SYSTEM, "no memory to wait for a session");
        session_end(session, END_FAILED, &err);
        exchange_fail(exchange, &err);
        return;
    }
    wait->session = session;
    wait->may_return = exchange_header(exchange, "Idempotency-Key") != NULL;
    wait->listener = (struct session_listener){ .context = exchange, .changed = on_changed };
    session_listen(session, &wait->listener);
    exchange->user = wait;
    exchange->closed = leave;
    exchange_wait(exchange);
}

/* Gives  the session that this very request has begun before; NULL: it is new, or that is answered,
 * with the tombstone of one that has ended. One that could not be built is none. */
static int find_begun(struct exchange *exchange, struct json_object *json, struct once *once,
                      struct session **ret_session, error *err)
{
    const struct service *service = exchange->service;
    int found = once_find(exchange, json, once, err);
    *ret_session = NULL;
    if (found != ONCE_KNOWN)
        return found;
    struct session *session =
        sessions_find(service->sessions, exchange->caller.account, once->known.id);
    if (!session)
        return once_fail_forgotten(once, err);
    if (session->state == SESSION_ENDED && session->end == END_FAILED)
        return 0;
    once_say_replayed(exchange);
    if (session->state == SESSION_ENDED)
        session_answer(exchange, session, MHD_HTTP_CREATED);
    else
        *ret_session = session;
    return 0;
}

static int begin_session(struct exchange *exchange, struct session **ret_session, error *err)
{
    struct json_object *json;
    struct once once;
    if (json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    int found = find_begun(exchange, json, &once, ret_session, err);
    if (found == 0 && !*ret_session && !exchange->is_answered)
        return create(exchange, json, &once, ret_session, err);
    (void) json_object_put(json);
    return found;
}

void session_post(struct exchange *exchange)
{
    error err;
    struct session *session = NULL;
    const struct wait *waiting = exchange->user;
    if (waiting)
        answer_built(exchange, waiting->session);
    else if (begin_session(exchange, &session, &err) < 0)
        exchange_fail(exchange, &err);
    else if (session)
        await_session(exchange, session);
}

/* --- branches -----------------------------------------------------------------------------------
 */

/* Takes a text out of the wishes: the rest is as for a change of a session. "" if there is none. */
static int take_override(struct json_object *overrides, const char *name,
                         char text[CONTEXT_ID_SIZE], error *err)
{
    struct json_object *value = NULL;
    text[0] = '\0';
    if (!json_object_is_type(overrides, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "the body must be a JSON object");
    if (!json_object_object_get_ex(overrides, name, &value))
        return 0;
    int length =
        json_object_is_type(value, json_type_string) ? json_object_get_string_len(value) : 0;
    if (length == 0 || length >= CONTEXT_ID_SIZE ||
        strlen(json_object_get_string(value)) != (size_t) length)
        return fail(err, ERR_BAD_REQUEST, "'%s' is an id, as a text", name);
    (void) snprintf(text, CONTEXT_ID_SIZE, "%s", json_object_get_string(value));
    json_object_object_del(overrides, name);
    return 0;
}

static int choose(struct json_object *overrides, struct session_source *source, error *err)
{
    char context[CONTEXT_ID_SIZE];
    char checkpoint[CONTEXT_ID_SIZE];
    if (take_override(overrides, "context", context, err) < 0 ||
        take_override(overrides, "checkpoint", checkpoint, err) < 0)
        return -1;
    if (checkpoint[0] && context[0])
        return fail(err, ERR_BAD_REQUEST,
                    "a checkpoint is of one context already; leave 'context' out");
    if (!checkpoint[0])
        return branch_choose(source->session, context[0] ? context : NULL, &source->context, err);
    if (session_check_running(source->session, err) < 0)
        return -1;
    return session_checkpoint_find(source->session, checkpoint, &source->checkpoint, err);
}

static int branch(struct exchange *exchange, struct json_object *overrides, struct once *once,
                  struct session **ret_session, error *err)
{
    const struct service *service = exchange->service;
    char id[SESSION_ID_SIZE];
    struct session *parent = NULL;
    if (sessions_enter(service->sessions, exchange->caller.account, exchange->parameters[0],
                       &parent, err) < 0)
        return -1;
    struct session_source source = { .session = parent,
                                     .processes = processes_running(service->processes, parent),
                                     .id = id };
    session_choose_id(id);
    if (choose(overrides, &source, err) < 0 || once_keep(exchange, once, id, err) < 0)
        return -1;
    if (session_branch(&source, exchange->caller.account, overrides, ret_session, err) == 0)
        return 0;
    once_drop(exchange, once);
    return -1;
}

static int begin_branch(struct exchange *exchange, struct session **ret_session, error *err)
{
    struct json_object *overrides;
    struct once once;
    if (exchange->body_bytes == 0)
        overrides = json_object_new_object();
    else if (json_reader_end(&exchange->body, &overrides, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    int result = find_begun(exchange, overrides, &once, ret_session, err);
    if (result == 0 && !*ret_session && !exchange->is_answered)
        result = branch(exchange, overrides, &once, ret_session, err);
    (void) json_object_put(overrides);
    return result;
}

void session_post_branch(struct exchange *exchange)
{
    error err;
    struct session *session = NULL;
    const struct wait *waiting = exchange->user;
    if (waiting)
        answer_built(exchange, waiting->session);
    else if (!exchange_tombstone(exchange))
        return;
    else if (begin_branch(exchange, &session, &err) < 0)
        exchange_fail(exchange, &err);
    else if (session)
        await_session(exchange, session);
}
