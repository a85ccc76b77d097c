/* echo_door.c - a second door, for the tests alone: POST /echo-run takes Python code as text and
 * answers with what it prints, as it prints it. It shows what a door needs: engine/service and
 * doors/http. */
#include "base/bytes.h"
#include "doors/http/http.h"
#include "engine/service/service_runs.h"

#include <json.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 64 * 1024 };

struct echo {
    struct bytes code;
    struct watch *watch;
    struct run_event event; /* on its way */
    size_t told;            /* of it */
};

static void on_changed(void *context)
{
    exchange_wake(context);
}

static void on_cut(void *context)
{
    exchange_cut(context);
}

static void echo_close(struct exchange *exchange)
{
    struct echo *echo = exchange->user;
    if (echo->watch)
        watch_close(echo->watch);
    bytes_done(&echo->code);
    free(echo);
}

static int echo_open(struct exchange *exchange, error *err)
{
    exchange->user = calloc(1, sizeof(struct echo));
    if (!exchange->user)
        return fail(err, ERR_SYSTEM, "no memory");
    exchange->closed = echo_close;
    return 0;
}

static ssize_t take_code(struct exchange *exchange, const char *data, size_t size, error *err)
{
    (void) err;
    struct echo *echo = exchange->user;
    bytes_add(&echo->code, data, size);
    return (ssize_t) size;
}

static int begin_run(struct exchange *exchange, error *err)
{
    struct echo *echo = exchange->user;
    struct run_order order = {
        .watcher = { exchange, on_changed, on_cut, HANGUP_CANCELS },
        .json = json_object_new_object(),
    };
    (void) json_object_object_add(order.json, "language", json_object_new_string("python"));
    (void) json_object_object_add(
        order.json, "code",
        json_object_new_string_len(bytes_text(&echo->code), (int) echo->code.size));
    return service_run(exchange->service, &exchange->caller, &order, &echo->watch, err);
}

/* Gives  false if there is nothing to copy now; what is no output is passed over. */
static bool next_output(struct echo *echo, int *ret_result)
{
    while (echo->told == echo->event.size) {
        *ret_result = watch_next(echo->watch, &echo->event);
        if (*ret_result != WATCH_EVENT)
            return false;
        bool is_output = echo->event.kind == EVENT_STDOUT || echo->event.kind == EVENT_STDERR;
        echo->told = is_output ? 0 : echo->event.size;
    }
    return true;
}

static ssize_t read_output(struct exchange *exchange, char *bytes, size_t size)
{
    struct echo *echo = exchange->user;
    int result = WATCH_EVENT;
    if (!next_output(echo, &result)) {
        echo->told = echo->event.size = 0;
        return result == WATCH_OVER ? STREAM_END : STREAM_LATER;
    }
    size_t here = echo->event.size - echo->told < size ? echo->event.size - echo->told : size;
    memcpy(bytes, echo->event.in->data + echo->event.from + echo->told, here);
    echo->told += here;
    return (ssize_t) here;
}

static void post_echo(struct exchange *exchange)
{
    error err;
    if (begin_run(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_stream_as(exchange, 200, "text/plain; charset=utf-8", STREAM_OF_ANY_SIZE,
                           read_output);
}

static const struct route rows[] = {
    { "POST", "/echo-run", BODY_STREAM, post_echo,
      "Runs Python code and answers with what it prints", RIGHT_RUN, .begin = echo_open,
      .take = take_code, .body_max = CODE_MAX },
};
static const struct route_table echo_routes = { "echo", rows, 1, RIGHT_RUN };
static const struct route_table *const echo_tables[] = { &echo_routes, NULL };

const struct door echo_door = { echo_tables, NULL };
