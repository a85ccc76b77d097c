/* traffic_stats_test.c - counts of rules, and the connections that are kept. */
#include "engine/network/traffic_stats.h"

#include "base/table.h"
#include "base/test.h"
#include "engine/schedule/accounts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct policy policy;
static struct account account;

static void add_rule(const char *host)
{
    struct network_rule *rule = &policy.route.rules[policy.route.count++];
    *rule = (struct network_rule){ .port_count = 1, .ports = { 443 } };
    (void) snprintf(rule->host, sizeof rule->host, "%s", host);
}

static void prepare(struct traffic *traffic, struct traffic_source *source)
{
    policy.route.count = 0;
    (void) snprintf(policy.name, sizeof policy.name, "web");
    add_rule("a.example.org");
    add_rule("b.example.org");
    *source = (struct traffic_source){ .id = "run_1", .account = &account };
    traffic_source_init(traffic, &policy, &policy.route, source);
}

static struct egress_record record_of(uint16_t label, uint16_t reason, uint64_t bytes)
{
    return (struct egress_record){ .label = label,
                                   .reason = reason,
                                   .sent = bytes,
                                   .received = 2 * bytes,
                                   .began_ms = 1000,
                                   .took_ms = 5,
                                   .name = "host" };
}

TEST(what_was_refused_is_denied_though_a_rule_names_it)
{
    static struct traffic traffic;
    struct traffic_source source;
    static const struct {
        uint16_t label, reason;
        uint64_t bytes;
        const char *decision;
    } facts[] = {
        { 0, EGRESS_ALLOWED, 10, "allow" },
        { 0, EGRESS_SPECIAL_ADDRESS, 0, "deny" },
        { 0, EGRESS_SNI_DIFFERS, 0, "deny" },
        { 0, EGRESS_UNREACHABLE, 0, "allow" }, /* nobody refused it */
        { 0, EGRESS_TOO_LONG, 7, "allow" },
        { 0, EGRESS_SENT_TOO_MUCH, 0, "deny" },
        { 0, EGRESS_ENDED, 7, "allow" },
        { EGRESS_NO_LABEL, EGRESS_NO_RULE, 0, "deny" },
    };
    prepare(&traffic, &source);
    for (size_t i = 0; i < COUNT_OF(facts); i++) {
        char wanted[32];
        struct egress_record record = record_of(facts[i].label, facts[i].reason, facts[i].bytes);
        traffic_note(&traffic, &source, &record, true);
        const struct traffic_event *event = traffic_event_at(&traffic, traffic.last);
        (void) snprintf(wanted, sizeof wanted, "\"decision\":\"%s\"", facts[i].decision);
        expect(event && memmem(event->json.data, event->json.size, wanted, strlen(wanted)),
               "%zu: not %s", i, wanted);
    }
    traffic_done(&traffic);
}

TEST(each_rule_counts_what_it_allowed)
{
    static struct traffic traffic;
    struct traffic_source source;
    struct traffic_source narrowed = { .id = "run_2", .account = &account };
    struct network_policy left = { .count = 1 };
    static const struct {
        uint16_t label, reason;
        uint64_t bytes;
        bool is_over;
    } facts[] = {
        { 0, EGRESS_ALLOWED, 10, true },
        { 0, EGRESS_ALLOWED, 10, false }, /* counted at its end */
        { 0, EGRESS_SNI_DIFFERS, 0, true },
        { 0, EGRESS_ENDED, 7, true },
        { EGRESS_NO_LABEL, EGRESS_NO_RULE, 0, true },
        { 9, EGRESS_ALLOWED, 1, true },
    };
    prepare(&traffic, &source);
    for_each(fact, facts) {
        struct egress_record record = record_of(fact->label, fact->reason, fact->bytes);
        traffic_note(&traffic, &source, &record, fact->is_over);
    }
    left.rules[0] =
        policy.route.rules[1]; /* a narrower rule of a request is counted for the policy's rule */
    left.rules[0].origin = 1;
    (void) snprintf(left.rules[0].path, sizeof left.rules[0].path, "/x");
    traffic_source_init(&traffic, &policy, &left, &narrowed);
    struct egress_record record = record_of(0, EGRESS_ALLOWED, 3);
    traffic_note(&traffic, &narrowed, &record, true);

    const struct traffic_rule *a = traffic_find(&traffic, "web", "a.example.org:443");
    const struct traffic_rule *b = traffic_find(&traffic, "web", "b.example.org:443");
    require(a && b, "rules are found by their text");
    expect(a->connections == 2 && a->refused == 1 && a->sent == 17 && a->received == 34 &&
               a->last_ms == 1005,
           "%" PRIu64 " %" PRIu64 " %" PRIu64, a->connections, a->refused, a->sent);
    expect(b->connections == 1 && b->sent == 3, "%" PRIu64, b->connections);
    expect(traffic_find_policy(&traffic, "web")->refused == 1, "what no rule allowed");
    expect(!traffic_find(&traffic, "web", "c:443") && !traffic_find(&traffic, "other", "x"),
           "none");
    traffic_done(&traffic);
}

TEST(the_last_are_kept_and_numbered)
{
    static struct traffic traffic;
    struct traffic_source source;
    prepare(&traffic, &source);
    expect(!traffic_event_at(&traffic, 1) && !traffic_event_at(&traffic, 0), "nothing yet");
    for (unsigned i = 0; i < TRAFFIC_KEPT + 3; i++) {
        struct egress_record record =
            record_of(i % 2 ? 0 : EGRESS_NO_LABEL, i % 2 ? EGRESS_ALLOWED : EGRESS_NO_RULE, i);
        traffic_note(&traffic, &source, &record, true);
    }
    expect(!traffic_event_at(&traffic, 3) && traffic_event_at(&traffic, 4), "the oldest went");
    expect(!traffic_event_at(&traffic, TRAFFIC_KEPT + 4), "the next has not come");
    const struct traffic_event *event = traffic_event_at(&traffic, TRAFFIC_KEPT + 2);
    require(event, "the last but one");
    struct bytes json = event->json;
    expect(event->kind == TRAFFIC_ENDED && event->account == &account, "%d", (int) event->kind);
    expect(strstr(bytes_text(&json), "\"source\":\"run_1\",\"policy\":\"web\"") &&
               strstr(bytes_text(&json), "\"rule\":\"a.example.org:443\""),
           "%s", bytes_text(&json));
    traffic_done(&traffic);
}

TEST(a_place_without_memory_is_used_again)
{
    static struct traffic traffic;
    struct traffic_source source;
    prepare(&traffic, &source);
    for (unsigned i = 0; i < 1 + TRAFFIC_KEPT; i++) {
        struct egress_record record = record_of(0, EGRESS_ALLOWED, i);
        traffic_note(&traffic, &source, &record, true);
        if (i == 0)
            traffic.events[1].json.failed = true;
        expect((i == 0) == !traffic_event_at(&traffic, i + 1), "%u", i);
    }
    traffic_done(&traffic);
}

TEST(what_is_withheld_is_counted_and_not_shown)
{
    static struct traffic traffic;
    static struct policy withholds = { .expect = { .on_fault = ON_FAULT_WITHHOLD, .text = "{}" } };
    struct traffic_source source, open;
    const struct egress_record record = record_of(EGRESS_NO_LABEL, EGRESS_NO_RULE, 0);
    prepare(&traffic, &open);
    source = (struct traffic_source){ .id = "run_2", .account = &account };
    traffic_source_init(&traffic, &withholds, &withholds.route, &source);
    for (unsigned i = 0; i < 5; i++)
        traffic_note(&traffic, &source, &record, true);
    expect(traffic.last == 0 && source.policy->refused == 5, "%" PRIu64, traffic.last);
    traffic_note(&traffic, &open, &record, true);
    expect(traffic.last == 1 && traffic_event_at(&traffic, 1), "%" PRIu64, traffic.last);
    traffic_done(&traffic);
}

TEST(edited_policies_and_new_names_have_bounds)
{
    static struct traffic traffic;
    struct traffic_source source;
    char name[32];
    prepare(&traffic, &source);
    for (unsigned i = 0; i < 2 * TRAFFIC_RULES_MAX; i++) {
        policy.route.count = 0;
        (void) snprintf(name, sizeof name, "n%u.example.org", i);
        add_rule(name);
        traffic_source_init(&traffic, &policy, &policy.route, &source);
    }
    expect(source.policy->count == TRAFFIC_RULES_MAX, "%u", source.policy->count);
    struct egress_record record = record_of(0, EGRESS_ALLOWED, 1);
    traffic_note(&traffic, &source, &record, true); /* by a rule beyond the bound */
    for (unsigned i = 0; i < TRAFFIC_POLICIES_MAX + 5; i++) {
        (void) snprintf(policy.name, sizeof policy.name, "p%u", i);
        traffic_source_init(&traffic, &policy, &policy.route, &source);
        traffic_note(&traffic, &source, &record, true);
    }
    expect(traffic.policy_count == TRAFFIC_POLICIES_MAX && !source.policy, "%u",
           traffic.policy_count);
    struct bytes text = { 0 };
    traffic_write_metrics(&traffic, &text);
    unsigned lines = 0;
    for (const char *at = bytes_text(&text); (at = strchr(at, '\n')); at++)
        lines++;
    expect(lines == 4 * (256 + 2), "%u lines", lines);
    bytes_done(&text);
    traffic_done(&traffic);
}

static void note_change(void *context)
{
    (*(unsigned *) context)++;
}

TEST(watchers_are_notified)
{
    static struct traffic traffic;
    unsigned changes = 0;
    struct traffic_source source;
    struct traffic_listener one = { .context = &changes, .changed = note_change };
    struct traffic_listener other = one;
    prepare(&traffic, &source);
    traffic_listen(&traffic, &one);
    traffic_listen(&traffic, &other);
    struct egress_record record = record_of(0, EGRESS_ALLOWED, 0);
    traffic_note(&traffic, &source, &record, false);
    expect(traffic_event_at(&traffic, 1)->kind == TRAFFIC_BEGUN, "it has begun");
    traffic_unlisten(&traffic, &one);
    traffic_unlisten(&traffic, &other);
    traffic_note(&traffic, &source, &record, true);
    expect(changes == 2 && !traffic.listeners, "%u", changes);
    traffic_done(&traffic);
}

TESTS(CASE(what_was_refused_is_denied_though_a_rule_names_it),
      CASE(each_rule_counts_what_it_allowed), CASE(the_last_are_kept_and_numbered),
      CASE(a_place_without_memory_is_used_again), CASE(what_is_withheld_is_counted_and_not_shown),
      CASE(edited_policies_and_new_names_have_bounds), CASE(watchers_are_notified))
