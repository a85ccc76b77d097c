/* call.c - one message: opened, woken, streamed, closed. */
#include "doors/mcp/mcp.h"
#include "engine/service/service_artifacts.h"
#include "engine/service/service_files.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { PATIENCE_MS = 2000 };

static struct mcp_call *calls; /* under way */

void mcp_call_free(struct mcp_call *call)
{
    struct mcp_work *work = &call->work;
    if (work->wait)
        session_wait_done(work->wait, !call->is_over);
    if (work->check)
        artifact_check_await(work->check, NULL, NULL);
    if (work->watch)
        watch_close(work->watch);
    file_task_free(work->file);
    bytes_done(&work->read);
    bytes_done(&work->encoded);
    if (call->before)
        call->before->next = call->next;
    else
        calls = call->next;
    if (call->next)
        call->next->before = call->before;
    if (call->exchange->caller.claim == &call->claim)
        call->exchange->caller.claim = NULL; /* the exchange of python_sse.c may outlive the call */
    (void) json_object_put(call->client_answer);
    (void) json_object_put(call->root);
    bytes_done(&call->out);
    free(call);
}

struct mcp_call *mcp_call_new(struct exchange *exchange, const struct mcp_catalogue *catalogue)
{
    struct mcp_call *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    call->exchange = exchange;
    call->catalogue = catalogue;
    call->status = MHD_HTTP_OK;
    call->began_ms = now_ms();
    call->patience = deadline_in(PATIENCE_MS);
    call->next = calls;
    if (calls)
        calls->before = call;
    calls = call;
    return call;
}

static void close_call(struct exchange *exchange)
{
    mcp_call_free(exchange->user);
}

struct mcp_call *mcp_call_open(struct exchange *exchange)
{
    struct mcp_call *call = mcp_call_new(exchange, exchange->door->own);
    error err;
    if (!call) {
        (void) fail(&err, ERR_SYSTEM, "no memory for a message");
        exchange_fail(exchange, &err);
        return NULL;
    }
    exchange->user = call;
    exchange->closed = close_call;
    return call;
}

bool mcp_may_stream(const struct mcp_call *call)
{
    const char *accept = exchange_header(call->exchange, MHD_HTTP_HEADER_ACCEPT);
    return accept && strstr(accept, "text/event-stream") && call->id;
}

void mcp_stream(struct mcp_call *call)
{
    call->is_stream = true;
}

static ssize_t read_call(struct exchange *exchange, char *bytes, size_t size)
{
    struct mcp_call *call = exchange->user;
    if (call->sent == call->out.size) {
        call->out.size = call->sent = 0;
        if (!call->is_over && call->proceed)
            call->proceed(call);
    }
    size_t here = call->out.size - call->sent < size ? call->out.size - call->sent : size;
    if (call->out.failed)
        return STREAM_BROKEN;
    if (here == 0)
        return call->is_over ? STREAM_END : STREAM_LATER;
    memcpy(bytes, call->out.data + call->sent, here);
    call->sent += here;
    return (ssize_t) here;
}

/* When to call `proceed` again if nothing wakes the call. */
static deadline next_moment(const struct mcp_call *call)
{
    deadline looks = call->exchange->look_at;
    if (!mcp_may_stream(call))
        return looks;
    return looks.at_ms != 0 && looks.at_ms < call->patience.at_ms ? looks : call->patience;
}

void mcp_call_settle(struct mcp_call *call)
{
    struct exchange *exchange = call->exchange;
    if (call->is_over && !call->is_stream) {
        if (call->out.size == 0)
            exchange_answer_nothing(exchange, call->status);
        else
            exchange_answer(exchange, call->status, &call->out);
        return;
    }
    if (!call->is_stream && deadline_has_passed(call->patience) && mcp_may_stream(call))
        mcp_stream(call);
    if (call->is_stream) {
        exchange_add_header(exchange, "X-Accel-Buffering", "no");
        exchange_stream(exchange, read_call);
    } else {
        exchange_wait_until(exchange, next_moment(call));
    }
}

void mcp_call_look_at(struct mcp_call *call, deadline moment)
{
    call->exchange->look_at = moment;
}

void mcp_call_wake(void *call)
{
    exchange_wake(((struct mcp_call *) call)->exchange);
}

/* Clients see their own calls: those of their handshake, or without one those of their key. */
static bool is_of(const struct mcp_call *call, const struct mcp_call *asker)
{
    return call->client == asker->client &&
           call->exchange->caller.account == asker->exchange->caller.account;
}

struct mcp_call *mcp_call_find(const struct mcp_call *asker, struct json_object *id)
{
    for (struct mcp_call *call = calls; call; call = call->next)
        if (call != asker && call->id && is_of(call, asker) && json_object_equal(call->id, id))
            return call;
    return NULL;
}

struct mcp_call *mcp_call_of_server_request(const struct mcp_call *asker, const char *id)
{
    for (struct mcp_call *call = calls; call; call = call->next)
        if (call->server_request[0] && is_of(call, asker) && strcmp(call->server_request, id) == 0)
            return call;
    return NULL;
}

void mcp_calls_forget_client(const struct mcp_client *client)
{
    for (struct mcp_call *call = calls; call; call = call->next) {
        if (call->client == client) {
            call->client = NULL;
            if (call->server_request[0]) { /* no answer is expected now */
                call->is_cancelled = true;
                mcp_call_wake(call);
            }
        }
        if (call->process == client)
            call->process = NULL;
    }
}
