/* http_test.c - a server with one route in this process, and its peer at the other end of a
 * socket. */
#include "doors/http/http.h"

#include "base/table.h"
#include "base/test.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Takes a few bytes at a time, and sometimes none for a moment. */
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

/* A route that is too early: is_early is true this often, and then false. */
static struct {
    unsigned times, asked, begun;
    bool begins_well;
} early;

static bool is_early(struct exchange *exchange)
{
    taker.exchange = exchange;
    if (++early.asked % (early.times + 1) == 0)
        return false;
    (void) uv_timer_start(&taker.later, on_later, 1, 0);
    return true;
}

static int begin(struct exchange *exchange, error *err)
{
    (void) exchange;
    expect(early.asked % (early.times + 1) == 0, "it began before its time");
    early.begun++;
    return early.begins_well ? 0 : fail(err, ERR_CONFLICT, "it may not");
}

static void answer_size(struct exchange *exchange)
{
    struct bytes json = { 0 };
    bytes_print(&json, "{\"bytes\": %llu}", (unsigned long long) exchange->body_bytes);
    exchange_answer(exchange, 200, &json);
}

static void answer_count(struct exchange *exchange)
{
    struct bytes json = { 0 };
    bytes_print(&json, "%llu", (unsigned long long) exchange_query_count(exchange, "size", 7));
    exchange_answer(exchange, 200, &json);
}

static const struct parameter size_query[] = {
    { "size", IN_QUERY, "count 1..100", "so many" },
    { "way", IN_QUERY, "=up, down", "which" },
    { "Accept", IN_HEADER, "string", "as ever" },
    { 0 },
};

static const struct route rows[] = {
    { "GET", "/v1/size", BODY_NONE, answer_count, "a number", RIGHT_NONE, .query = size_query },
    { "GET", "/v1/none", BODY_NONE, answer_count, "without a query", RIGHT_NONE },
    { "ANY", "/v1/any", BODY_NONE, answer_count, "passes it on", RIGHT_NONE },
    { "PUT", "/x", BODY_STREAM, answer, "takes bytes", RIGHT_NONE, .take = take_some },
    { "GET", "/e", BODY_NONE, answer_size, "nothing", RIGHT_NONE, .begin = begin },
    { "POST", "/e", BODY_JSON, answer_size, "takes JSON", RIGHT_NONE, .begin = begin },
    { "PUT", "/e", BODY_STREAM, answer_size, "takes bytes", RIGHT_NONE, .begin = begin,
      .take = take_some },
};
static const struct route_table table = { "x", rows, sizeof rows / sizeof *rows, RIGHT_NONE };
static const struct route_table *const tables[] = { &table, NULL };
static struct door door = { .tables = tables };
static const struct door *const doors[] = { &door, NULL };

static void on_too_late(uv_timer_t *timer)
{
    uv_stop(timer->loop);
}

/* The peer: it ends when it has got the last answer, which ends with this text. */
static struct {
    int socket;
    char said[4096];
    size_t size;
    const char *last;
} peer;

static void on_readable(uv_poll_t *poll, int status, int events)
{
    (void) status;
    (void) events;
    ssize_t got =
        recv(peer.socket, peer.said + peer.size, sizeof peer.said - 1 - peer.size, MSG_DONTWAIT);
    peer.size += got > 0 ? (size_t) got : 0;
    peer.said[peer.size] = '\0';
    if (got <= 0 || strstr(peer.said, peer.last))
        uv_stop(poll->loop);
}

/* All requests are in the socket before the first byte is read. */
static void talk(const char *asks, size_t size, const char *last)
{
    enum { PATIENCE_MS = 10000 };
    uv_loop_t loop;
    uv_timer_t patience;
    uv_poll_t reader;
    struct http *http = NULL;
    error err;
    int pair[2];
    struct accounts accounts = { 0 };
    struct service service = { .accounts = &accounts };
    struct http_settings settings = {
        .doors = doors, .service = &service, .body_max = 1 << 20, .is_private = true
    };
    door.is_early = early.times ? is_early : NULL;
    require(uv_loop_init(&loop) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "no loop");
    require(uv_timer_init(&loop, &taker.later) == 0 && uv_timer_init(&loop, &patience) == 0 &&
                uv_poll_init(&loop, &reader, pair[1]) == 0,
            "no timers");
    peer.socket = pair[1];
    peer.last = last;
    peer.size = 0;
    require(write(pair[1], asks, size) == (ssize_t) size, "the socket is full");
    require(http_open(&loop, &settings, &http, &err) == 0 && http_serve(http, pair[0], &err) == 0,
            "%s", err.text);
    (void) uv_timer_start(&patience, on_too_late, PATIENCE_MS, 0);
    (void) uv_poll_start(&reader, UV_READABLE, on_readable);
    (void) uv_run(&loop, UV_RUN_DEFAULT);

    http_close(http);
    uv_close((uv_handle_t *) &patience, NULL);
    uv_close((uv_handle_t *) &reader, NULL);
    uv_close((uv_handle_t *) &taker.later, NULL);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    (void) uv_loop_close(&loop);
    (void) close(pair[1]);
}

/* No event follows the last bytes of the body. */
TEST(a_body_that_is_taken_in_parts_is_taken_whole)
{
    enum { BODY = 20000 };
    static char asks[BODY + 128];
    int head = snprintf(asks, 128,
                        "PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n", BODY);
    talk(asks, (size_t) head + BODY, "\r\n\r\n");
    expect(taker.bytes == BODY, "%llu bytes were taken", (unsigned long long) taker.bytes);
    expect(strncmp(peer.said, "HTTP/1.1 204", 12) == 0, "the answer is '%.20s'", peer.said);
}

static unsigned count_of(const char *text)
{
    unsigned count = 0;
    for (const char *at = peer.said; (at = strstr(at, text)); at++)
        count++;
    return count;
}

#define ASKS                                                                    \
    "GET /e HTTP/1.1\r\nHost: localhost\r\n\r\n"                                \
    "POST /e HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n" \
    "Content-Length: 13\r\n\r\n{\"a\": [1, 2]}"                                 \
    "PUT /e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 14\r\n\r\nfourteen bytes"

TEST(what_comes_too_early_is_begun_once_when_its_time_has_come)
{
    taker.bytes = 0;
    early.begins_well = true;
    for (early.times = 1; early.times <= 3; early.times++) {
        early.asked = early.begun = 0;
        talk(ASKS, sizeof ASKS - 1, "\"bytes\": 14}");
        expect(early.begun == 3, "%u of 3 requests were begun: %s", early.begun, peer.said);
        expect(count_of("HTTP/1.1 200") == 3 && count_of("\"bytes\": 0}") == 1 &&
                   count_of("\"bytes\": 13}") == 1,
               "said: %s", peer.said);
        expect(early.asked == 3 * (early.times + 1), "it was asked %u times", early.asked);
    }
    early.times = 0;
}

TEST(what_may_not_begin_is_refused_after_it_has_waited)
{
    static const char asks[] = "PUT /e HTTP/1.1\r\nHost: localhost\r\nContent-Length: 13\r\n\r\n"
                               "thirteen byte";
    taker.bytes = 0;
    early.begins_well = false;
    early.times = 2;
    early.asked = early.begun = 0;
    talk(asks, sizeof asks - 1, "it may not");
    expect(early.begun == 1 && taker.bytes == 0 && strncmp(peer.said, "HTTP/1.1 409", 12) == 0,
           "begun %u times, %llu bytes taken: %s", early.begun, (unsigned long long) taker.bytes,
           peer.said);
    early.times = 0;
}

TEST(a_query_is_what_the_table_says)
{
    static const struct {
        const char *path, *status, *says;
    } facts[] = {
        { "/v1/size", "200", "\r\n\r\n7" },
        { "/v1/size?way=up&size=100", "200", "\r\n\r\n100" },
        { "/v1/size?size=101", "400", "size=101 is not a number from 1 to 100" },
        { "/v1/size?way=on", "400", "way 'on' does not exist; it is one of up, down" },
        { "/v1/size?size=1&s%69ze=2&Size=3&x", "400",
          "GET /v1/size takes no 'Size' in its query; it takes size, way\"" },
        { "/v1/size?Accept=x", "400", "takes no 'Accept' in its query; it takes size, way\"" },
        { "/v1/none?size=1", "400", "takes no 'size' in its query; it takes none\"" },
        { "/v1/none?", "200", "\r\n\r\n7" },
        { "/v1/any?size=8", "200", "\r\n\r\n8" },
        { "/e?x=1", "200", "\"bytes\": 0}" },
    };
    early.begins_well = true;
    for_each(fact, facts) {
        char asks[200];
        int size =
            snprintf(asks, sizeof asks,
                     "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", fact->path);
        talk(asks, (size_t) size, fact->says);
        expect(strncmp(peer.said + 9, fact->status, 3) == 0 && strstr(peer.said, fact->says),
               "%s is answered '%s'", fact->path, peer.said);
    }
}

TESTS(CASE(a_query_is_what_the_table_says), CASE(a_body_that_is_taken_in_parts_is_taken_whole),
      CASE(what_comes_too_early_is_begun_once_when_its_time_has_come),
      CASE(what_may_not_begin_is_refused_after_it_has_waited))
