/* run_follow.c - see run_follow.h. */
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
    COPIED_MAX = 64 * 1024, /* larger results are sent from the run, as fast as the client reads */
};

struct visit {
    struct watch *watch;
    bool is_bounded;
    deadline patience;
    unsigned status; /* of the answer if the client waits no longer */
    size_t told;     /* bytes of the result that were sent */
    struct event_stream events;
};

static void on_woken(void *context)
{
    struct exchange *exchange = context;
    const struct visit *visit = exchange->user;
    if (exchange->is_streaming || (visit && watch_is_over(visit->watch)))
        exchange_wake(exchange);
}

static void on_cut(void *context)
{
    exchange_cut(context);
}

static void leave(struct exchange *exchange)
{
    struct visit *visit = exchange->user;
    events_done(&visit->events);
    watch_close(visit->watch);
    free(visit);
}

static int begin_visit(struct exchange *exchange, const struct visit *how, error *err)
{
    struct visit *visit = malloc(sizeof *visit);
    if (!visit) {
        watch_close(how->watch);
        return fail(err, ERR_SYSTEM, "no memory to wait for a run");
    }
    *visit = *how;
    events_open(&visit->events, visit->watch);
    exchange->user = visit;
    exchange->closed = leave;
    return 0;
}

/* Finds a word in a list such as "respond-async, wait=10". Gives  what follows it. */
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

static void preference_read(const struct exchange *exchange, struct preference *ret_preference)
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

struct watcher exchange_watcher(struct exchange *exchange, bool begins_run)
{
    struct preference preference;
    preference_read(exchange, &preference);
    bool may_return = preference.is_async || exchange_header(exchange, "Idempotency-Key");
    return (struct watcher){ .context = exchange,
                             .woken = on_woken,
                             .cut = on_cut,
                             .hangup = !begins_run  ? HANGUP_LEAVES
                                       : may_return ? HANGUP_DETACHES
                                                    : HANGUP_CANCELS };
}

int exchange_join(struct exchange *exchange, struct watch *watch, error *err)
{
    return begin_visit(exchange, &(struct visit){ .watch = watch }, err);
}

int exchange_join_new(struct exchange *exchange, struct watch *watch, error *err)
{
    struct preference preference;
    struct visit visit = { .watch = watch, .status = MHD_HTTP_ACCEPTED };
    preference_read(exchange, &preference);
    if (preference.is_async && !watch_is_lost(watch)) {
        visit.is_bounded = true;
        visit.patience = deadline_in((int64_t) preference.wait_ms);
        exchange_add_header(exchange, "Preference-Applied", "respond-async");
    }
    return begin_visit(exchange, &visit, err);
}

int exchange_join_until(struct exchange *exchange, struct watch *watch, deadline patience,
                        error *err)
{
    struct visit visit = {
        .watch = watch, .is_bounded = true, .patience = patience, .status = MHD_HTTP_OK
    };
    return begin_visit(exchange, &visit, err);
}

/* Copies the result and a newline. */
static ssize_t read_result(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    const struct bytes *result = watch_result(visit->watch);
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

static void answer_result(struct exchange *exchange, const struct watch *watch)
{
    const struct bytes *result = watch_result(watch);
    unsigned status = watch_status(watch) == RUN_PENDING_APPROVAL ? MHD_HTTP_ACCEPTED : MHD_HTTP_OK;
    struct bytes json = { 0 };
    if (result->size > COPIED_MAX) {
        exchange_stream_as(exchange, status, "application/json", result->size + 1, read_result);
        return;
    }
    bytes_add(&json, result->data, result->size);
    exchange_answer(exchange, status, &json);
}

static void answer_state(struct exchange *exchange, const struct watch *watch, unsigned status)
{
    char url[64];
    struct bytes json = json_begin('{');
    (void) snprintf(url, sizeof url, "/v1/runs/%s", watch_id(watch));
    if (status == MHD_HTTP_ACCEPTED)
        exchange_add_header(exchange, MHD_HTTP_HEADER_LOCATION, url);
    json_string_field(&json, "id", watch_id(watch));
    json_string_field(&json, "status", watch_state(watch));
    json_string_field(&json, "url", url);
    json_close(&json, '}');
    exchange_answer(exchange, status, &json);
}

/* Sends the only event of a run that was lost. */
static void answer_lost_event(struct exchange *exchange, const struct watch *watch)
{
    const struct bytes *result = watch_result(watch);
    struct bytes event = { 0 };
    bytes_add_text(&event, "event: end\ndata: ");
    bytes_add(&event, result->data, result->size);
    bytes_add_text(&event, "\n\n");
    exchange_answer_as(exchange, MHD_HTTP_OK, "text/event-stream", &event);
}

static ssize_t read_events(struct exchange *exchange, char *bytes, size_t size)
{
    struct visit *visit = exchange->user;
    return events_read(&visit->events, bytes, size);
}

void exchange_tell_events(struct exchange *exchange)
{
    const struct visit *visit = exchange->user;
    const char *from = exchange_query(exchange, "from");
    const char *last = from ? from : exchange_header(exchange, "Last-Event-ID");
    error err;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has joined a run */
    if (watch_is_lost(visit->watch))
        answer_lost_event(exchange, visit->watch);
    else if (last && *last && strcmp(last, "0") != 0 && watch_seek(visit->watch, last, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_stream(exchange, read_events);
}

bool exchange_wants_events(const struct exchange *exchange)
{
    const char *accept = exchange_header(exchange, MHD_HTTP_HEADER_ACCEPT);
    const char *stream = exchange_query(exchange, "stream");
    return (accept && strstr(accept, "text/event-stream")) || (stream && strcmp(stream, "1") == 0);
}

void exchange_tell_run(struct exchange *exchange)
{
    const struct visit *visit = exchange->user;
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): the caller has joined a run */
    const struct watch *watch = visit->watch;
    if (exchange_wants_events(exchange))
        exchange_tell_events(exchange);
    else if (watch_is_over(watch))
        answer_result(exchange, watch);
    else if (visit->is_bounded && deadline_has_passed(visit->patience))
        answer_state(exchange, watch, visit->status);
    else
        exchange_wait_until(exchange, visit->is_bounded ? visit->patience : (deadline){ 0 });
}
