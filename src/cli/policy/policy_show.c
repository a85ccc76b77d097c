/* policy_show.c - `glovebox policy show`: prints all of an effective policy as text. */
#include "base/cleanup.h"
#include "base/hosts_file.h"
#include "base/table.h"
#include "cli/policy/policy_verbs.h"
#include "policy/address.h"
#include "json/member.h"

#include <stdio.h>

enum { ADDRESSES_SHOWN = 4 };

static void print_limits(const struct policy *policy)
{
    (void) printf("\n%-16s %-12s %-12s\n", "limit", "a run gets", "at most");
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t values[] = { limit_get(&policy->limits, id), limit_get(&policy->maximum, id) };
        char texts[2][32];
        for (int i = 0; i < 2; i++)
            if (limit_may_be_off(id) && values[i] == 0)
                (void) snprintf(texts[i], sizeof texts[i], "not limited");
            else
                limit_print(id, values[i], texts[i], sizeof texts[i]);
        (void) printf("%-16s %-12s %-12s %s\n", row->name, texts[0], texts[1], row->text);
    }
}

static void print_sessions(const struct policy *policy)
{
    const char *before = "";
    (void) printf("%-16s ", "sessions");
    for (unsigned i = 0; i < SESSIONS_BOUNDS; i++) {
        enum policy_session_bound bound = (enum policy_session_bound) i;
        uint64_t max = 0;
        char text[64];
        if (!policy_bounds_sessions(policy, bound, &max))
            continue;
        policy_bound_print(bound, max, text, sizeof text);
        (void) printf("%s%s", before, text);
        before = ", ";
    }
    (void) puts(policy->sessions.given ? "" : "not limited");
}

static void print_approval(const struct policy_approval *approval)
{
    char when[64], scopes[64], expires[32];
    if (approval->when == 0) {
        (void) printf("%-16s none\n", "approval");
        return;
    }
    approval_print_asks(approval->when, when, sizeof when);
    approval_print_scopes(approval_scopes(approval), scopes, sizeof scopes);
    limit_print(LIMIT_wall, approval_expires_ms(approval), expires, sizeof expires);
    (void) printf("%-16s when %s; by %s; scopes %s; expires %s\n", "approval", when,
                  approval->is_out_of_band ? "out_of_band" : "terminal", scopes, expires);
}

static void print_precheck(const struct precheck *precheck)
{
    (void) printf("%-16s %s\n", "precheck", precheck->is_on ? "" : "none");
    for (size_t i = 0; precheck->is_on && i < CHECK_RULES; i++)
        (void) printf("  %-14s %s\n", check_rows[i].name,
                      check_decision_name((enum check_decision) precheck->rules[i]));
    for (size_t i = 0; i < precheck->module_count; i++)
        (void) printf("  import %s: %s\n", precheck->modules[i].name,
                      check_decision_name((enum check_decision) precheck->modules[i].decision));
}

/* Prints limits on the traffic of all connections of a run together. */
static void print_traffic(const struct network_policy *route)
{
    const struct {
        const char *name;
        uint64_t bytes;
    } rows[] = { { "bytes", route->sent }, { "received", route->received } };
    for_each(row, rows) {
        char text[32] = "not limited";
        if (row->bytes > 0)
            limit_print(LIMIT_disk, row->bytes, text, sizeof text);
        (void) printf("  %-14s %s\n", row->name, text);
    }
    (void) printf("  %-14s %u\n", "connections", route->connections);
}

static void print_expect(const struct policy_expect *expect)
{
    auto_json list = expect->text[0] ? json_tokener_parse(expect->text) : NULL;
    if (!list && expect->on_fault == ON_FAULT_UNSAID) {
        (void) printf("%-16s none\n", "expect");
        return;
    }
    (void) printf("%-16s on_fault %s\n", "expect", policy_on_fault_name(expect->on_fault));
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object_object_foreach(json_object_array_get_idx(list, i), name, value)(void)
            printf("  %-14s %s\n", name,
                   json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
    }
}

/* Writes the addresses that the operator has given for the upstream, and that `network` permits. */
static void write_stated(const struct network_endpoint *endpoint, const char *hosts, char *text,
                         size_t size)
{
    struct in6_addr found[ADDRESSES_SHOWN];
    unsigned count = hosts_file_addresses(hosts, endpoint->url.host, found, COUNT_OF(found));
    size_t used = 0;
    text[0] = '\0';
    for (unsigned i = 0; i < count; i++) {
        char address[ADDRESS_TEXT];
        if (endpoint->has_network &&
            !address_is_within(&found[i], endpoint->network, endpoint->prefix))
            continue;
        address_write(&found[i], address);
        used += (size_t) snprintf(text + used, size - used, "%s%s", used ? ", " : "", address);
    }
    if (count > 0 && used == 0)
        (void) snprintf(text, size, "no address, for none lies in its network");
}

void policy_print_endpoints(const struct policy *policy)
{
    auto_text hosts = hosts_file_read();
    for (unsigned i = 0; i < policy->route.endpoint_count; i++) {
        const struct network_endpoint *endpoint = &policy->route.endpoints[i];
        char text[NETWORK_RULE_TEXT], stated[ADDRESSES_SHOWN * (ADDRESS_TEXT + 2)];
        network_endpoint_write(endpoint, text);
        write_stated(endpoint, hosts ? hosts : "", stated, sizeof stated);
        (void) printf("  endpoint       %s%s%s\n", text, stated[0] ? "; connects to " : "", stated);
    }
}

void policy_print(const struct policy *policy)
{
    (void) printf("%-16s %s%s%s\n", "name", policy->name, policy->extends[0] ? ", extends " : "",
                  policy->extends);
    if (policy->description[0])
        (void) printf("%-16s %s\n", "description", policy->description);
    (void) printf("%-16s %s\n%-16s", "template", policy->template, "languages");
    for (size_t i = 0; i < policy->language_count; i++)
        (void) printf("%s %s", i > 0 ? "," : "", policy->languages[i]);
    (void) printf("\n%-16s %s\n", "network",
                  policy->network == POLICY_NETWORK_RULES      ? "what is listed below"
                  : policy->network == POLICY_NETWORK_LOOPBACK ? "loopback"
                                                               : "none");
    for (unsigned i = 0; policy->network == POLICY_NETWORK_RULES && i < policy->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        const struct network_rule *rule = &policy->route.rules[i];
        network_rule_write(rule, text);
        (void) printf("  allow          %s", text);
        if (rule->from_set > 0)
            (void) printf("  (set %s)", policy->route.sets[rule->from_set - 1]);
        (void) putchar('\n');
    }
    policy_print_endpoints(policy);
    if (policy->network == POLICY_NETWORK_RULES)
        print_traffic(&policy->route);
    for (size_t i = 0; i < policy->variable_count; i++)
        (void) printf("%-16s %s=%s\n", i > 0 ? "" : "env", policy->variables[i].name,
                      policy->variables[i].value);
    print_sessions(policy);
    print_precheck(&policy->precheck);
    print_approval(&policy->approval);
    print_expect(&policy->expect);
    (void) printf("%-16s %s\n", "digest", policy->digest);
    print_limits(policy);
}
