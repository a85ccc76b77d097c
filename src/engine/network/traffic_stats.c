/* traffic_stats.c - see traffic_stats.h. */
#include "engine/network/traffic_stats.h"

#include "base/list.h"

#include "engine/network/connection_document.h"
#include "engine/observe/metrics.h"
#include "engine/schedule/accounts.h"
#include "policy/policy_permits.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { NO_RULE = UINT8_MAX, SERIES_MAX = 256 /* in one family of metrics */ };

_Static_assert((int) TRAFFIC_RULES_MAX < (int) NO_RULE, "a number of a rule is one byte");

/* --- counts ----------------------------------------------------------------------------------- */

static struct traffic_policy *find_policy(const struct traffic *traffic, const char *name)
{
    struct traffic_policy *policy = traffic->policies;
    while (policy && strcmp(policy->name, name) != 0)
        policy = policy->next;
    return policy;
}

static struct traffic_policy *need_policy(struct traffic *traffic, const char *name)
{
    struct traffic_policy *policy = find_policy(traffic, name);
    if (policy || traffic->policy_count == TRAFFIC_POLICIES_MAX)
        return policy;
    policy = calloc(1, sizeof *policy);
    if (!policy)
        return NULL;
    (void) memcpy(policy->name, name, strnlen(name, sizeof policy->name - 1));
    policy->next = traffic->policies;
    traffic->policies = policy;
    traffic->policy_count++;
    return policy;
}

static unsigned find_rule(const struct traffic_policy *policy, const char *text)
{
    unsigned number = 0;
    while (number < policy->count && strcmp(policy->rules[number].text, text) != 0)
        number++;
    return number < policy->count ? number : NO_RULE;
}

static unsigned need_rule(struct traffic_policy *policy, const struct network_rule *rule)
{
    char text[NETWORK_RULE_TEXT];
    network_rule_write(rule, text);
    unsigned number = find_rule(policy, text);
    if (number != NO_RULE || policy->count == TRAFFIC_RULES_MAX)
        return number;
    struct traffic_rule *place = &policy->rules[policy->count];
    memcpy(place->text, text, strlen(text) + 1);
    return policy->count++;
}

void traffic_source_init(struct traffic *traffic, const struct policy *policy,
                         const struct network_policy *rules, struct traffic_source *source)
{
    const struct network_policy *whole = &policy->route;
    source->policy = need_policy(traffic, policy->name);
    source->is_withheld = policy_withholds(policy);
    memset(source->rules, NO_RULE, sizeof source->rules);
    for (unsigned i = 0; source->policy && i < rules->count; i++) {
        unsigned own = rules == whole ? i : rules->rules[i].origin;
        if (own < whole->count)
            source->rules[i] = (uint8_t) need_rule(source->policy, &whole->rules[own]);
    }
}

static struct traffic_rule *rule_of(const struct traffic_source *source,
                                    const struct egress_record *record)
{
    unsigned number = record->label < NETWORK_RULES_MAX ? source->rules[record->label] : NO_RULE;
    return source->policy && number != NO_RULE ? &source->policy->rules[number] : NULL;
}

const struct traffic_policy *traffic_find_policy(const struct traffic *traffic, const char *policy)
{
    return find_policy(traffic, policy);
}

const struct traffic_rule *traffic_find(const struct traffic *traffic, const char *policy,
                                        const char *rule)
{
    const struct traffic_policy *found = find_policy(traffic, policy);
    unsigned number = found ? find_rule(found, rule) : NO_RULE;
    return number != NO_RULE ? &found->rules[number] : NULL;
}

static void count(const struct traffic_source *source, const struct egress_record *record,
                  enum traffic_kind kind)
{
    struct traffic_rule *rule = rule_of(source, record);
    int64_t at_ms = (int64_t) record->began_ms + record->took_ms;
    if (rule) {
        rule->connections += kind == TRAFFIC_ENDED;
        rule->refused += kind == TRAFFIC_REFUSED;
        rule->sent += record->sent;
        rule->received += record->received;
        rule->last_ms = at_ms;
    } else if (source->policy && record->label == EGRESS_NO_LABEL) {
        source->policy->refused++;
        source->policy->last_refused_ms = at_ms;
    }
}

/* --- the last connections --------------------------------------------------------------------- */

const char *traffic_kind_name(enum traffic_kind kind)
{
    static const char *const names[] = {
        [TRAFFIC_BEGUN] = "begun", [TRAFFIC_ENDED] = "ended", [TRAFFIC_REFUSED] = "refused"
    };
    return names[kind];
}

static enum traffic_kind kind_of(const struct egress_record *record, bool is_over)
{
    if (!is_over)
        return TRAFFIC_BEGUN;
    bool has_passed = record->reason == EGRESS_ALLOWED || record->sent > 0 || record->received > 0;
    return has_passed ? TRAFFIC_ENDED : TRAFFIC_REFUSED;
}

static void write_event(const struct traffic_source *source, const struct egress_record *record,
                        struct traffic_event *event)
{
    struct bytes *json = &event->json;
    struct connection_texts texts;
    struct fact_connection fact;
    const struct traffic_rule *rule = rule_of(source, record);
    connection_fact_of(record, rule ? rule->text : NULL, &texts, &fact);
    json->size = 0;
    json->failed = false; /* of the event that was in this place before */
    json_open(json, '{');
    json_string_field(json, "event", traffic_kind_name(event->kind));
    json_string_field(json, "source", source->id);
    json_string_field(json, "policy", source->policy ? source->policy->name : "");
    json_moment_field(json, "started_at", (int64_t) record->began_ms);
    connection_write(&fact, record->took_ms, json);
    json_close(json, '}');
}

uint64_t traffic_told(const struct traffic *traffic, const struct account *account)
{
    if (!account)
        return traffic->last;
    return account->tenant < traffic->tenants ? traffic->of_tenant[account->tenant] : 0;
}

/* Is there memory to keep an event, and to count it? */
static bool has_room(struct traffic *traffic, uint32_t tenant)
{
    if (!traffic->events)
        traffic->events = calloc(TRAFFIC_KEPT, sizeof *traffic->events);
    if (tenant >= traffic->tenants) {
        uint64_t *more = realloc(traffic->of_tenant, (tenant + 1) * sizeof *more);
        if (!more)
            return false;
        memset(more + traffic->tenants, 0, (tenant + 1 - traffic->tenants) * sizeof *more);
        traffic->of_tenant = more;
        traffic->tenants = tenant + 1;
    }
    return traffic->events != NULL;
}

void traffic_note(struct traffic *traffic, const struct traffic_source *source,
                  const struct egress_record *record, bool is_over)
{
    enum traffic_kind kind = kind_of(record, is_over);
    if (is_over)
        count(source, record, kind);
    uint32_t tenant = source->account->tenant;
    if (source->is_withheld || !has_room(traffic, tenant))
        return;
    struct traffic_event *event = &traffic->events[++traffic->last % TRAFFIC_KEPT];
    event->number = traffic->last;
    event->own = ++traffic->of_tenant[tenant];
    event->kind = kind;
    event->account = source->account;
    memcpy(event->source, source->id, sizeof event->source);
    write_event(source, record, event);
    traffic_tell(traffic);
}

void traffic_tell(struct traffic *traffic)
{
    for (struct traffic_listener *listener = traffic->listeners, *next; listener; listener = next) {
        next = listener->next;
        listener->changed(listener->context);
    }
}

const struct traffic_event *traffic_event_at(const struct traffic *traffic, uint64_t number)
{
    const struct traffic_event *event =
        traffic->events && number > 0 ? &traffic->events[number % TRAFFIC_KEPT] : NULL;
    return event && event->number == number && !event->json.failed ? event : NULL;
}

void traffic_listen(struct traffic *traffic, struct traffic_listener *listener)
{
    listener->next = traffic->listeners;
    traffic->listeners = listener;
}

void traffic_unlisten(struct traffic *traffic, struct traffic_listener *listener)
{
    (void) list_remove(traffic->listeners, listener, next);
}

void traffic_done(struct traffic *traffic)
{
    for (unsigned i = 0; traffic->events && i < TRAFFIC_KEPT; i++)
        bytes_done(&traffic->events[i].json);
    free(traffic->events);
    free(traffic->of_tenant);
    for (struct traffic_policy *policy = traffic->policies, *next; policy; policy = next) {
        next = policy->next;
        free(policy);
    }
    *traffic = (struct traffic){ 0 };
}

/* --- metrics ---------------------------------------------------------------------------------- */

/* Writes the counter at `field`. Names of policies and rules contain no quote, backslash or line
 * end. */
static void write_family(const struct traffic *traffic, enum metric metric, size_t field,
                         struct bytes *out)
{
    unsigned series = 0;
    uint64_t value;
    metric_write_head(metric, out);
    for (const struct traffic_policy *policy = traffic->policies; policy; policy = policy->next)
        for (unsigned i = 0; i < policy->count && series < SERIES_MAX; i++, series++) {
            memcpy(&value, (const char *) &policy->rules[i] + field, sizeof value);
            bytes_print(out, "%s{policy=\"%s\",rule=\"%s\"} %" PRIu64 "\n", metric_name(metric),
                        policy->name, policy->rules[i].text, value);
        }
}

void traffic_write_metrics(const struct traffic *traffic, struct bytes *out)
{
    write_family(traffic, METRIC_RULE_CONNECTIONS, offsetof(struct traffic_rule, connections), out);
    write_family(traffic, METRIC_RULE_REFUSED, offsetof(struct traffic_rule, refused), out);
    write_family(traffic, METRIC_RULE_SENT, offsetof(struct traffic_rule, sent), out);
    write_family(traffic, METRIC_RULE_RECEIVED, offsetof(struct traffic_rule, received), out);
}
