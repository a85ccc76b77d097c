/* http_test.c - a server of one route in this process, and its peer at the other end of a socket.
 */
#include "daemon/rest/http.h"

#include "base/test.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Takes a few bytes at a time, and now and then none for a moment. */
static struct {
    uint64_t bytes;
    unsigned calls;
    uv_timer_t later;
    struct exchange *exchange;
} taker;

static void on_later(uv_timer_t *timer)
{
    (void) timer;
    exchange_wake(taker.exchange);
}

static ssize_t take_some(struct exchange *exchange, const char *data, size_t size, error *err)
{
    (void) data;
    (void) err;
    taker.exchange = exchange;
    if (++taker.calls % 7 == 0) {
        (void) uv_timer_start(&taker.later, on_later, 1, 0);
        return 0;
    }
    size_t part = size < 1000 ? size : 1000;
    taker.bytes += part;
    return (ssize_t) part;
}

static void answer(struct exchange *exchange)
{
    exchange_answer_nothing(exchange, 204);
}

static const struct route rows[] = {
    { "PUT", "/x", BODY_STREAM, answer, "takes bytes", RIGHT_NONE, .take = take_some },
};
static const struct route_table table = { "x", rows, 1, RIGHT_NONE };
static const struct route_table *const tables[] = { &table, NULL };

static void on_too_late(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void) status;
    (void) events;
    uv_stop(poll->loop);
}

/* All bytes of a body are there before the first is taken, and nothing follows them. */
TEST(a_body_that_is_taken_in_parts_is_taken_whole)
{
    enum { BODY = 20000, PATIENCE_MS = 10000 };
    static char body[BODY];
    uv_loop_t loop;
    uv_timer_t patience;
    uv_poll_t reader;
    struct http *http = NULL;
    error err;
    int pair[2];
    char head[128], said[256] = "";
    struct http_settings settings = { .tables = tables, .body_most = 1 << 20, .is_private = true };
    require(uv_loop_init(&loop) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no loop");
    require(uv_timer_init(&loop, &taker.later) == 0 && uv_timer_init(&loop, &patience) == 0 &&
                uv_poll_init(&loop, &reader, pair[1]) == 0,
            "no timers");
    int size = snprintf(head, sizeof head,
                        "PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", BODY);
    require(write(pair[1], head, (size_t) size) == size && write(pair[1], body, BODY) == BODY,
            "the socket is full");
    require(http_open(&loop, &settings, &http, &err) == 0 && http_serve(http, pair[0], &err) == 0,
            "%s", err.text);
    (void) uv_timer_start(&patience, on_too_late, PATIENCE_MS, 0);
    (void) uv_poll_start(&reader, UV_READABLE, on_readable);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(taker.bytes == BODY, "%llu bytes were taken", (unsigned long long) taker.bytes);
    expect(recv(pair[1], said, sizeof said - 1, MSG_DONTWAIT) > 0 &&
               strncmp(said, "HTTP/1.1 204", 12) == 0,
           "the answer is '%.20s'", said);

    http_close(http);
    uv_close((uv_handle_t *) &patience, NULL);
    uv_close((uv_handle_t *) &reader, NULL);
    uv_close((uv_handle_t *) &taker.later, NULL);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    (void) uv_loop_close(&loop);
    (void) close(pair[1]);
}

TESTS(CASE(a_body_that_is_taken_in_parts_is_taken_whole))
