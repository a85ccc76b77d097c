/* run_follow.c - an exchange that waits for a run, or tells it. A client that hangs up ends the run
 * that it has begun, unless it said that it would not wait (Prefer: respond-async) or that it may
 * ask again (Idempotency-Key). */
#include "doors/rest/run_follow.h"

#include "doors/rest/run_events_sse.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    WAIT_MAX_S = 300,
    COPIED_MAX = 64 * 1024, /* what is larger is read from the run, at the client's own pace */
};

struct visit {
    struct run *run;
    struct run_listener listener;
    bool owns_run; /* when the peer hangs up nobody wants the result: the run is cancelled */
    bool is_bounded;
    deadline patience;
    unsigned status; /* of the answer when patience has gone */
    size_t told;     /* of the result */
    struct event_stream events;
};

static void on_changed(void *context, struct run *run)
{
    struct exchange *exchange = context;
    if (exchange->is_streaming || run->state == RUN_DONE)
        exchange_wake(exchange);
}

static void on_let_go(void *context)
{
    exchange_cut(context);
}

static void leave(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    struct run *run = visit->run;
    bool is_unfinished = visit->owns_run && run->state != RUN_DONE;
    run_unlisten(run, &visit->listener);
    events_done(&visit->events);
    free(visit);
    if (is_unfinished)
        run_cancel(run);
}

static int begin_visit(struct exchange *exchange, struct run *run, const struct visit *how,
                       error *err)
{
    struct visit *visit = malloc(sizeof *visit);
    if (!visit)
        return fail(err, ERR_SYSTEM, "no memory to wait for a run");
    *visit = *how;
    visit->run = run;
    visit->listener =
        (struct run_listener){ .context = exchange, .changed = on_changed, .release = on_let_go };
    events_open(&visit->events, run);
    run_listen(run, &visit->listener);
    exchange->user = visit;
    exchange->closed = leave;
    return 0;
}

/* One word of a list such as "respond-async, wait=10". Gives  what follows it. */
static const char *find_preference(const char *list, const char *word)
{
    size_t length = strlen(word);
    while (list && *list) {
        list += strspn(list, " \t,;");
        if (strncasecmp(list, word, length) == 0)
            return list + length;
        list += strcspn(list, ",;");
    }
    return NULL;
}

void preference_read(const struct exchange *exchange, struct preference *ret_preference)
{
    const char *list = exchange_header(exchange, "Prefer");
    const char *wait = find_preference(list, "wait=");
    *ret_preference = (struct preference){ 0 };
    ret_preference->is_async = find_preference(list, "respond-async") != NULL;
    if (!ret_preference->is_async || !wait || *wait < '0' || *wait > '9')
        return;
    uint64_t seconds = strtoull(wait, NULL, 10);
    ret_preference->wait_ms = 1000 * (seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S);
}

int exchange_join_run(struct exchange *exchange, struct run *run, bool owns_run, error *err)
{
    struct preference preference;
    preference_read(exchange, &preference);
    bool may_return = preference.is_async || exchange_header(exchange, "Idempotency-Key");
    struct visit visit = { .owns_run = owns_run && !may_return, .status = MHD_HTTP_ACCEPTED };
    if (owns_run && preference.is_async) {
        visit.is_bounded = true;
        visit.patience = deadline_in((int64_t) preference.wait_ms);
        exchange_add_header(exchange, "Preference-Applied", "respond-async");
    }
    if (begin_visit(exchange, run, &visit, err) < 0)
        return -1;
    if (owns_run && may_return)
        run_detach(run);
    return 0;
}

int exchange_join_new(struct exchange *exchange, struct run *run, error *err)
{
    if (exchange_join_run(exchange, run, true, err) == 0)
        return 0;
    run_cancel(run);
    return -1;
}

int exchange_await_run(struct exchange *exchange, struct run *run, deadline patience,
                       unsigned status, error *err)
{
    struct visit visit = { .is_bounded = true, .patience = patience, .status = status };
    return begin_visit(exchange, run, &visit, err);
}

/* The result and the end of its line. */
static ssize_t read_result(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    const struct bytes *result = &visit->run->result;
    if (visit->told > result->size)
        return STREAM_END;
    size_t here = result->size - visit->told;
    if (here >= size) {
        here = size;
        memcpy(bytes, result->data + visit->told, here);
    } else {
        memcpy(bytes, result->data + visit->told, here);
        bytes[here++] = '\n';
    }
    visit->told += here;
    return (ssize_t) here;
}

static void answer_result(struct exchange *exchange, const struct run *run)
{
    unsigned status = run->verdict.status == RUN_PENDING_APPROVAL ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK;
    struct bytes json = { 0 };
    if (run->result.size > COPIED_MAX) {
        exchange_stream_as(exchange, status, "application/json", run->result.size + 1, read_result);
        return;
    }
    bytes_add(&json, run->result.data, run->result.size);
    exchange_answer(exchange, status, &json);
}

void exchange_answer_state(struct exchange *exchange, const struct run *run, unsigned status)
{
    char url[64];
    struct bytes json = { 0 };
    (void) snprintf(url, sizeof url, "/v1/runs/%s", run->id);
    if (status == MHD_HTTP_ACCEPTED)
        exchange_add_header(exchange, MHD_HTTP_HEADER_LOCATION, url);
    json_open(&json, '{');
    json_string_field(&json, "id", run->id);
    json_string_field(&json, "status", run_state_name(run_state_shown(run)));
    json_string_field(&json, "url", url);
    json_close(&json, '}');
    exchange_answer(exchange, status, &json);
}

static ssize_t read_events(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    return events_read(&visit->events, bytes, size);
}

void exchange_tell_events(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    const char *from = exchange_query(exchange, "from");
    const char *last = from ? from : exchange_header(exchange, "Last-Event-ID");
    error err;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): whoever calls this has joined a run */
    if (last && *last && strcmp(last, "0") != 0 && events_resume(&visit->events, last, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_stream(exchange, read_events);
}

static bool wants_events(const struct exchange *exchange)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT);
    const char *stream = exchange_query(exchange, "stream");
    return (accept && strstr(accept, "text/event-stream")) || (stream && strcmp(stream, "1") == 0);
}

int exchange_tell_lost(struct exchange *exchange, const char *id, error *err)
{
    const struct service *service = exchange->service;
    const char *mime = exchange->route->mime;
    struct bytes result = { 0 };
    int known = lost_runs_result(service->lost_runs, exchange->caller.account, id, &result, err);
    if (known == 0 && mime && strcmp(mime, "text/event-stream") != 0)
        known = fail(err, ERR_NOT_FOUND, "%.60s was lost, and what it made with it", id);
    if (known < 0) {
        bytes_done(&result);
        return -1;
    }
    if (!mime && !wants_events(exchange)) {
        exchange_answer(exchange, MHD_HTTP_OK, &result);
        return 0;
    }
    struct bytes event = { 0 };
    bytes_add_text(&event, "event: end\ndata: ");
    bytes_add(&event, result.data, result.size);
    bytes_add_text(&event, "\n\n");
    bytes_done(&result);
    exchange_answer_as(exchange, MHD_HTTP_OK, "text/event-stream", &event);
    return 0;
}

void exchange_tell_run(struct exchange *exchange)
{
    const struct visit *visit = exchange->user;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): whoever calls this has joined a run */
    const struct run *run = visit->run;
    if (wants_events(exchange))
        exchange_tell_events(exchange);
    else if (run->state == RUN_DONE)
        answer_result(exchange, run);
    else if (visit->is_bounded && deadline_has_passed(visit->patience))
        exchange_answer_state(exchange, run, visit->status);
    else
        exchange_wait_until(exchange, visit->is_bounded ? visit->patience : (deadline){ 0 });
}
