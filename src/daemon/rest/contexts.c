/* contexts.c - /v1/sessions/{id}/contexts: translates HTTP into the calls of sessions.h. */
#include "daemon/json_writer.h"
#include "daemon/rest/rest.h"
#include "daemon/sessions.h"

#include <microhttpd.h>
#include <string.h>

static int read_request(struct exchange *exchange, bool is_cell, struct context_request *request,
                        error *err)
{
    struct json_object *json;
    if (json_reader_end(&exchange->body, &json, err) < 0)
        return -1;
    json_reader_close(&exchange->body);
    return context_request_read(json, is_cell, request, err);
}

static struct context *exchange_context(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct context *context = NULL;
    error err;
    if (!session)
        return NULL;
    if (context_find(session, exchange->parameters[1], &context, &err) < 0)
        exchange_fail(exchange, &err);
    return context;
}

static void answer_context(struct exchange *exchange, const struct context *context,
                           unsigned status)
{
    struct bytes json = { 0 };
    context_write(context, &json);
    exchange_answer(exchange, status, &json);
}

void post_context(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct context_request request;
    struct context *context;
    error err;
    if (!session)
        return;
    if (read_request(exchange, false, &request, &err) < 0 ||
        context_create(session, &request, &context, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_context(exchange, context, MHD_HTTP_CREATED);
}

void get_contexts(struct exchange *exchange)
{
    const struct session *session = exchange_session(exchange);
    struct bytes json = { 0 };
    if (!session)
        return;
    json_open(&json, '{');
    json_key(&json, "contexts");
    session_write_contexts(session, &json);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

void delete_context(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    struct bytes json = { 0 };
    if (!context)
        return;
    context_remove(context);
    json_open(&json, '{');
    json_string_field(&json, "removed", exchange->parameters[1]);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static int submit_cell(struct exchange *exchange, struct context *context, error *err)
{
    struct context_request request;
    struct run *run;
    if (read_request(exchange, true, &request, err) < 0 ||
        context_run(context, &request, &run, err) < 0)
        return -1;
    if (exchange_join_run(exchange, run, true, err) < 0) {
        run_cancel(run);
        return -1;
    }
    return 0;
}

void post_cell(struct exchange *exchange)
{
    error err;
    if (!exchange->user) {
        struct context *context = exchange_context(exchange);
        if (!context)
            return;
        if (submit_cell(exchange, context, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
    }
    exchange_tell_run(exchange);
}

void post_interrupt(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    error err;
    if (!context)
        return;
    int result = context_interrupt(context, &err);
    if (result < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_flag_field(&json, "interrupted", result != CONTEXT_WAS_IDLE);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

void post_restart(struct exchange *exchange)
{
    struct context *context = exchange_context(exchange);
    error err;
    if (!context)
        return;
    if (context_restart(context, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_context(exchange, context, MHD_HTTP_OK);
}
