/* tool_session.c - session_open and session_close, and the session that other tools run in: a named
 * one, or `mine`, which is begun at its first use. */
#include "base/table.h"
#include "doors/mcp/mcp.h"
#include "engine/service/service_sessions.h"
#include "json/writer.h"

#include <stdio.h>
#include <string.h>

/* --- a new session ---------------------------------------------------------------------------- */

static void on_made(struct mcp_call *call)
{
    error err;
    struct mcp_work *work = &call->work;
    struct session *session = session_wait_session(work->wait);
    if (!service_session_is_made(session))
        return;
    int made = service_session_check_made(session, &err);
    session_wait_done(work->wait, false);
    work->wait = NULL;
    call->proceed = NULL;
    if (made < 0)
        mcp_tool_fail(call, &err);
    else
        work->then(call);
}

/* Takes the request. `then` is called when the session was made. */
static void begin(struct mcp_call *call, struct json_object *request)
{
    struct order once = { 0 };
    const struct session_order order = { .order = &once, .request = request };
    const struct waker waker = { mcp_call_wake, call };
    struct mcp_work *work = &call->work;
    struct exchange *exchange = call->exchange;
    struct session *session = NULL;
    error err;
    int begun = service_session_begin(exchange->service, &exchange->caller, &order, &session, &err);
    (void) json_object_put(request);
    if (begun == 0) {
        (void) snprintf(work->session, sizeof work->session, "%s", service_session_id(session));
        work->is_new = true;
        if (call->process)
            mcp_client_remember_session(call, work->session);
        if (!service_session_is_made(session)) {
            work->wait = service_session_await_new(session, false, &waker, &err);
            call->proceed = on_made;
            if (work->wait)
                return;
        } else if (service_session_check_made(session, &err) == 0) {
            work->then(call);
            return;
        }
    }
    mcp_tool_fail(call, &err);
}

static struct json_object *request_of(const struct mcp_call *call)
{
    struct json_object *request = json_object_new_object();
    static const char *const names[] = { "policy", "idle_seconds" };
    for_each(name, names) {
        struct json_object *value = json_member(call->arguments, *name);
        if (value)
            (void) json_object_object_add(request, *name, json_object_get(value));
    }
    return request;
}

/* --- an existing session ---------------------------------------------------------------------- */

static void await_standing(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    const struct waker waker = { mcp_call_wake, call };
    struct exchange *exchange = call->exchange;
    if (work->wait)
        session_wait_done(work->wait, true);
    work->wait = service_session_await(exchange->service, &exchange->caller, work->session,
                                       AWAITS_STANDING, &waker);
    call->proceed = work->wait ? await_standing : NULL;
    if (!work->wait)
        work->then(call);
}

/* The client's own session, NULL: none. If it has ended, the first call that finds this out reports
 * why. */
static struct session *own_session(struct mcp_call *call, struct mcp_client *client)
{
    struct exchange *exchange = call->exchange;
    struct session *session = NULL;
    error err;
    if (!client->mine[0])
        return NULL;
    if (service_session_enter(exchange->service, &exchange->caller, client->mine, &session, &err) ==
        0)
        return session;
    (void) snprintf(call->work.note, sizeof call->work.note,
                    "Your previous session has ended, and its variables and files are lost: %s.",
                    err.text);
    client->mine[0] = '\0';
    return NULL;
}

/* Waits for a session that another call has begun. */
static void await_begun(struct mcp_call *call, struct session *session)
{
    const struct waker waker = { mcp_call_wake, call };
    error err;
    call->work.wait = service_session_await_new(session, true, &waker, &err);
    call->proceed = on_made;
    if (!call->work.wait)
        mcp_tool_fail(call, &err);
}

static void use_own(struct mcp_call *call)
{
    error err;
    struct mcp_client *client = mcp_client_of(call);
    call->work.is_mine = true;
    if (!client) {
        (void) fail(&err, ERR_BUSY, "too many clients at once; name a session_id instead");
        mcp_tool_fail(call, &err);
        return;
    }
    struct session *session = own_session(call, client);
    if (session) {
        (void) snprintf(call->work.session, sizeof call->work.session, "%s", client->mine);
        if (service_session_is_made(session))
            await_standing(call);
        else
            await_begun(call, session);
        return;
    }
    begin(call, request_of(call));
    (void) snprintf(client->mine, sizeof client->mine, "%s", call->work.session);
}

void mcp_session_use(struct mcp_call *call, void (*then)(struct mcp_call *call))
{
    const char *id = member_text(call->arguments, "session_id");
    const char *own = member_text(call->arguments, "session");
    error err;
    call->work.then = then;
    if (id && own) {
        (void) fail(&err, ERR_BAD_REQUEST, "give session_id or session, not both");
        mcp_tool_fail(call, &err);
    } else if (own) {
        use_own(call);
    } else if (id) {
        call->work.is_named = true;
        (void) snprintf(call->work.session, sizeof call->work.session, "%s", id);
        await_standing(call);
    } else {
        then(call);
    }
}

/* --- the tools -------------------------------------------------------------------------------- */

static void tell(struct mcp_call *call, const char *state)
{
    struct exchange *exchange = call->exchange;
    struct session *session = NULL;
    char text[MCP_NOTE_SIZE];
    error err;
    if (service_session_look(exchange->service, &exchange->caller, call->work.session, &session,
                             &err) < 0) {
        mcp_tool_fail(call, &err);
        return;
    }
    (void) snprintf(text, sizeof text, "Session %s %s.", call->work.session, state);
    struct bytes *out = mcp_result_open_text(call, text);
    json_key(out, "structuredContent");
    service_session_write(session, out);
    json_flag_field(out, "isError", false);
    mcp_result_close(call);
}

static void tell_opened(struct mcp_call *call)
{
    tell(call, "is open. Give it as session_id; variables, files in /workspace and programs stay "
               "until session_close, or until it has been idle for too long");
}

void mcp_session_open(struct mcp_call *call)
{
    call->work.then = tell_opened;
    begin(call, request_of(call));
}

static void await_copies(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    const struct waker waker = { mcp_call_wake, call };
    struct exchange *exchange = call->exchange;
    struct session *session = NULL;
    error err;
    if (work->wait)
        session_wait_done(work->wait, true);
    work->wait = service_session_await(exchange->service, &exchange->caller, work->session,
                                       AWAITS_COPIES_TO_END, &waker);
    call->proceed = work->wait ? await_copies : NULL;
    if (work->wait)
        return;
    if (service_session_look(exchange->service, &exchange->caller, work->session, &session, &err) <
        0) {
        mcp_tool_fail(call, &err);
        return;
    }
    service_session_delete(session);
    tell(call, "has ended; its variables and files are deleted");
}

void mcp_session_close(struct mcp_call *call)
{
    (void) snprintf(call->work.session, sizeof call->work.session, "%s",
                    member_text(call->arguments, "session_id"));
    await_copies(call);
}
