/* network.c - /v1/network: how often the rules of policies are used, and connections out of
 * sandboxes as they come, for whoever may see the runs that they belong to. */
#include "base/clock.h"
#include "base/table.h"
#include "doors/rest/openapi/openapi.h"
#include "doors/rest/rest.h"
#include "json/chunked_text.h"
#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- rules --------------------------------------------------------------------------------------
 */

static void write_rule(const struct traffic *traffic, const struct policy *policy,
                       const struct network_rule *rule, struct bytes *json)
{
    static const struct traffic_rule never;
    char text[NETWORK_RULE_TEXT];
    network_rule_write(rule, text);
    const struct traffic_rule *used = traffic_find(traffic, policy->name, text);
    if (!used)
        used = &never;
    json_open(json, '{');
    json_string_field(json, "rule", text);
    json_key(json, "set");
    json_string(json, rule->from_set > 0 ? policy->route.sets[rule->from_set - 1] : NULL);
    json_count_field(json, "connections", used->connections);
    json_count_field(json, "refused", used->refused);
    json_count_field(json, "sent", used->sent);
    json_count_field(json, "received", used->received);
    json_since_epoch_field(json, "last_ms", used->last_ms);
    json_close(json, '}');
}

static void write_policy(const struct traffic *traffic, const struct policy *policy,
                         struct bytes *json)
{
    const struct traffic_policy *used = traffic_find_policy(traffic, policy->name);
    json_open(json, '{');
    json_string_field(json, "name", policy->name);
    json_count_field(json, "refused", used ? used->refused : 0);
    json_since_epoch_field(json, "last_refused_ms", used ? used->last_refused_ms : 0);
    json_key(json, "rules");
    json_open(json, '[');
    for (unsigned i = 0; i < policy->route.count; i++)
        write_rule(traffic, policy, &policy->route.rules[i], json);
    json_close(json, ']');
    json_close(json, '}');
}

static void get_rules(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_number_field(&json, "since_ms",
                      wall_clock_ms() - (now_ms() - http_began_ms(exchange->http)));
    json_key(&json, "policies");
    json_open(&json, '[');
    for (size_t i = 0; i < service->policies->count; i++) {
        const struct policy *policy = policies_at(service->policies, i);
        if (policy && policy->network == POLICY_NETWORK_RULES)
            write_policy(service->traffic, policy, &json);
    }
    json_close(&json, ']');
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

/* --- connections --------------------------------------------------------------------------------
 */

struct watch {
    struct traffic *traffic;
    struct traffic_listener listener;
    char source[TRAFFIC_SOURCE_SIZE]; /* "": any */
    bool sees_all, follows;
    uint64_t at; /* the last event that was told, or passed over */
    struct chunked_text pending;
};

static void on_changed(void *context)
{
    exchange_wake(context);
}

static void leave(struct exchange *exchange)
{
    struct watch *watch = exchange->user;
    traffic_unlisten(watch->traffic, &watch->listener);
    bytes_done(&watch->pending.text);
    free(watch);
}

static bool is_wanted(const struct exchange *exchange, const struct traffic_event *event)
{
    const struct watch *watch = exchange->user;
    return event && (watch->sees_all || account_sees(exchange->caller.account, event->account)) &&
           (!watch->source[0] || strcmp(watch->source, event->source) == 0);
}

/* How many have gone before they were read: nobody waits for a slow reader. */
static uint64_t skip_forgotten(struct watch *watch)
{
    uint64_t last = watch->traffic->last;
    uint64_t oldest = last > TRAFFIC_KEPT ? last - TRAFFIC_KEPT + 1 : 1;
    uint64_t missed = watch->at + 1 < oldest ? oldest - watch->at - 1 : 0;
    watch->at += missed;
    return missed;
}

/* Returns false if there is nothing new. */
static bool say_next(struct exchange *exchange)
{
    struct watch *watch = exchange->user;
    uint64_t missed = skip_forgotten(watch);
    if (missed > 0) {
        bytes_print(&watch->pending.text, "event: missed\ndata: {\"at_most\":%" PRIu64 "}\n\n",
                    missed);
        return true;
    }
    while (watch->at < watch->traffic->last) {
        const struct traffic_event *event = traffic_event_at(watch->traffic, ++watch->at);
        if (!is_wanted(exchange, event))
            continue;
        bytes_print(&watch->pending.text,
                    "event: %s\nid: %" PRIu64 "\ndata: ", traffic_kind_name(event->kind),
                    event->number);
        bytes_add(&watch->pending.text, event->json.data, event->json.size);
        bytes_add_text(&watch->pending.text, "\n\n");
        return true;
    }
    return false;
}

static ssize_t read_connections(struct exchange *exchange, char *bytes, size_t size)
{
    struct watch *watch = exchange->user;
    size_t copied = 0;
    while (copied < size) {
        if (chunked_text_are_taken(&watch->pending)) {
            chunked_text_forget(&watch->pending);
            if (!say_next(exchange) || watch->pending.text.failed)
                break;
        }
        copied += chunked_text_take(&watch->pending, bytes + copied, size - copied);
    }
    if (copied > 0)
        return (ssize_t) copied;
    const struct service *service = exchange->service;
    bool goes_on = watch->follows && !watch->pending.text.failed && !service->runs->is_closing;
    return goes_on ? STREAM_LATER : STREAM_END;
}

/* So far back that `count` of those that are wanted come first. */
static void go_back(const struct exchange *exchange, uint64_t count)
{
    struct watch *watch = exchange->user;
    watch->at = watch->traffic->last;
    for (uint64_t number = watch->at, found = 0;
         found < count && number > 0 && watch->at - number < TRAFFIC_KEPT; number--) {
        const struct traffic_event *event = traffic_event_at(watch->traffic, number);
        if (!event)
            break;
        if (is_wanted(exchange, event)) {
            found++;
            if (found == count) {
                watch->at = number - 1;
                return;
            }
        }
    }
    if (count > 0)
        watch->at = watch->traffic->last > TRAFFIC_KEPT ? watch->traffic->last - TRAFFIC_KEPT : 0;
}

static bool is_set(const struct exchange *exchange, const char *name, bool otherwise)
{
    const char *value = exchange_query(exchange, name);
    return value ? strcmp(value, "0") != 0 && strcmp(value, "false") != 0 : otherwise;
}

static int begin_watch(struct exchange *exchange, error *err)
{
    const struct service *service = exchange->service;
    const char *source = exchange_query(exchange, "source");
    const char *seen = exchange_header(exchange, "Last-Event-ID");
    uint64_t count;
    bool sees_all = is_set(exchange, "all", false);
    if (exchange_query_count(exchange, "last", TRAFFIC_KEPT, TRAFFIC_KEPT, &count, err) < 0 ||
        (sees_all && account_check_scope(exchange->caller.account, SCOPE_ADMIN, err) < 0))
        return -1;
    if (source && strlen(source) >= TRAFFIC_SOURCE_SIZE)
        return fail(err, ERR_BAD_REQUEST, "source is the id of a run or session: run_… or ses_…");
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        return fail(err, ERR_SYSTEM, "no memory to watch connections");
    watch->traffic = service->traffic;
    watch->sees_all = sees_all;
    watch->follows = is_set(exchange, "follow", true);
    if (source)
        (void) snprintf(watch->source, sizeof watch->source, "%s", source);
    watch->listener = (struct traffic_listener){ .context = exchange, .changed = on_changed };
    exchange->user = watch;
    exchange->closed = leave;
    go_back(exchange, count);
    if (seen && *seen >= '0' && *seen <= '9')
        watch->at = strtoull(seen, NULL, 10);
    if (watch->at > watch->traffic->last)
        watch->at = watch->traffic->last; /* of the daemon before this one */
    traffic_listen(watch->traffic, &watch->listener);
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

static const struct parameter connections_query[] = {
    { "source", IN_QUERY, "string", "only those of this run or session" },
    { "last", IN_QUERY, "count 0..512",
      "how many of those that have been come first; all that are kept if it is left out" },
    { "follow", IN_QUERY, "=0,1", "0: the stream ends behind them" },
    { "all", IN_QUERY, "=0,1", "1: of all tenants, for the scope admin" },
    { "Last-Event-ID", IN_HEADER, "string", "goes on behind this one" },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/network/rules", BODY_NONE, get_rules, "How often each rule of each policy was used since the daemon began", RIGHT_AUDIT, .gives = "NetworkRules" },
    { "GET", "/v1/network/connections", BODY_NONE, get_connections, "Connections out of sandboxes as they begin, end and are refused, as events", RIGHT_RESULTS,
      .query = connections_query, .mime = "text/event-stream" },
    /* clang-format on */
};

const struct route_table network_routes = { "network", rows, COUNT_OF(rows), RIGHT_ADMIN };
