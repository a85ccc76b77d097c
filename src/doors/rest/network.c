/* network.c - /v1/network: how often the rules of policies are used, and connections of sandboxes
 * as they happen, for callers that may see the runs. */
#include "engine/service/service_network.h"

#include "base/clock.h"
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/service_runs.h"
#include "json/chunked_text.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void write_rule(const struct network_rule_use *rule, struct bytes *json)
{
    json_open(json, '{');
    json_string_field(json, "rule", rule->rule);
    json_string_field(json, "set", rule->set);
    json_count_field(json, "connections", rule->connections);
    json_count_field(json, "refused", rule->refused);
    json_count_field(json, "sent", rule->sent);
    json_count_field(json, "received", rule->received);
    json_moment_field(json, "last_used_at", rule->last_ms);
    json_close(json, '}');
}

static void write_policy(void *context, const struct network_use *use)
{
    struct bytes *json = context;
    struct network_rule_use rule;
    json_open(json, '{');
    json_string_field(json, "name", use->policy);
    json_count_field(json, "refused", use->refused);
    json_moment_field(json, "last_refused_at", use->last_refused_ms);
    json_open_field(json, "rules", '[');
    for (unsigned i = 0; i < use->rule_count; i++) {
        network_use_rule(use, i, &rule);
        write_rule(&rule, json);
    }
    json_close_all(json, "]}");
}

static void get_rules(struct exchange *exchange)
{
    struct bytes json = json_begin('{');
    json_moment_field(&json, "started_at",
                      wall_clock_ms() - (now_ms() - http_began_ms(exchange->http)));
    json_open_field(&json, "policies", '[');
    service_each_network_use(exchange->service, write_policy, &json);
    exchange_end_json(exchange, &json, "]}");
}

struct view {
    struct connection_watch *watch;
    struct chunked_text pending;
};

static void on_closed(struct exchange *exchange)
{
    struct view *view = exchange->user;
    connection_watch_close(view->watch);
    bytes_done(&view->pending.text);
    free(view);
}

static void write_event(const struct connection_event *event, struct bytes *text)
{
    if (event->missed > 0) {
        bytes_print(text, "event: missed\ndata: {\"at_most\":%" PRIu64 "}\n\n", event->missed);
        return;
    }
    bytes_print(text, "event: %s\nid: %" PRIu64 "\ndata: {\"number\":%" PRIu64 ",", event->kind,
                event->number, event->number);
    bytes_add(text, event->json + 1, event->json_size - 1); /* after its bracket */
    bytes_add_text(text, "\n\n");
}

static ssize_t read_connections(struct exchange *exchange, char *bytes, size_t size)
{
    struct view *view = exchange->user;
    struct connection_event event;
    size_t copied = 0;
    int next = WATCH_EVENT;
    while (copied < size) {
        if (chunked_text_are_taken(&view->pending)) {
            chunked_text_forget(&view->pending);
            next = connection_watch_next(view->watch, &event);
            if (next != WATCH_EVENT)
                break;
            write_event(&event, &view->pending.text);
            if (view->pending.text.failed)
                break;
        }
        copied += chunked_text_take(&view->pending, bytes + copied, size - copied);
    }
    if (copied > 0)
        return (ssize_t) copied;
    return next == WATCH_OVER || view->pending.text.failed ? STREAM_END : STREAM_LATER;
}

static bool is_set(const struct exchange *exchange, const char *name, bool otherwise)
{
    const char *value = exchange_query(exchange, name);
    return value ? strcmp(value, "0") != 0 && strcmp(value, "false") != 0 : otherwise;
}

static int begin_watch(struct exchange *exchange, error *err)
{
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    const char *seen = exchange_header(exchange, "Last-Event-ID");
    bool is_number = seen && *seen >= '0' && *seen <= '9';
    struct connection_query query = { .source = exchange_query(exchange, "source"),
                                      .sees_all = is_set(exchange, "all", false),
                                      .follows = is_set(exchange, "follow", true),
                                      .last =
                                          exchange_query_count(exchange, "last", CONNECTIONS_KEPT),
                                      .has_seen = is_number,
                                      .seen = is_number ? strtoull(seen, NULL, 10) : 0 };
    struct view *view = calloc(1, sizeof *view);
    if (!view)
        return fail(err, ERR_SYSTEM, "no memory to watch connections");
    view->watch =
        service_watch_connections(exchange->service, &exchange->caller, &query, &waker, err);
    if (!view->watch) {
        free(view);
        return -1;
    }
    exchange->user = view;
    exchange->closed = on_closed;
    return 0;
}

static void get_connections(struct exchange *exchange)
{
    error err;
    if (!exchange->user && begin_watch(exchange, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_stream(exchange, read_connections);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/network/rules", BODY_NONE, get_rules, "How often each rule of each policy was used since the daemon began", RIGHT_AUDIT, .gives = "NetworkRules", .operation = "listNetworkRules" },
    { "GET", "/v1/network/connections", BODY_NONE, get_connections, "Connections out of sandboxes as they begin, end and are refused, as events", RIGHT_RESULTS,
      .mime = "text/event-stream", .operation = "followConnections",
      .query = QUERY({ "source", IN_QUERY, "string", "only those of this run or session" },
                     { "last", IN_QUERY, "count 0..512",
                       "how many of those that have been come first; all that are kept if it is left out" },
                     { "follow", IN_QUERY, "=0, 1", "0: the stream ends behind them" },
                     { "all", IN_QUERY, "=0, 1", "1: of all tenants, for the scope admin" },
                     { "Last-Event-ID", IN_HEADER, "string", "goes on behind this one" }) },
    /* clang-format on */
};

const struct route_table network_routes = { "network", rows, COUNT_OF(rows), RIGHT_ADMIN,
                                            .text = "What went out of sandboxes" };
