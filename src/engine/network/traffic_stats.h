/* traffic_stats.h - network use of sandboxes, for watchers: how often each rule of each policy was
 * used since the daemon began, and the last connections of all runs and sessions in the order in
 * which they were reported. All is bounded; a watcher costs only a position. */
#pragma once

#include "base/bytes.h"
#include "contract/egress.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stdint.h>

struct account;

enum {
    TRAFFIC_KEPT = 512,         /* connections */
    TRAFFIC_POLICIES_MAX = 256, /* that were used, by name */
    TRAFFIC_RULES_MAX = 32,     /* of one policy: its rules, and earlier ones */
    TRAFFIC_SOURCE_SIZE = 40,   /* of the id of a run or session */
};

struct traffic_rule {
    char text[NETWORK_RULE_TEXT];
    uint64_t connections; /* that have ended */
    uint64_t refused;     /* allowed by the rule, but failed */
    uint64_t sent, received;
    int64_t last_ms; /* wall clock */
};

struct traffic_policy {
    char name[POLICY_NAME_SIZE];
    unsigned count;
    struct traffic_rule rules[TRAFFIC_RULES_MAX];
    uint64_t refused; /* that no rule allowed */
    int64_t last_refused_ms;
    struct traffic_policy *next;
};

/* The owner of connections: one egress route. Numbers of rules are those in its own rules. */
struct traffic_source {
    char id[TRAFFIC_SOURCE_SIZE];
    const struct account *account;
    struct traffic_policy *policy; /* NULL: too many policies */
    bool is_withheld;              /* by its policy: watchers do not see it, nor a gap in numbers */
    uint8_t rules[NETWORK_RULES_MAX];
};

enum traffic_kind { TRAFFIC_BEGUN, TRAFFIC_ENDED, TRAFFIC_REFUSED };

struct traffic_event {
    uint64_t number; /* from 1; 0: none */
    uint64_t own;    /* the same within its tenant, which must not learn the number of others */
    enum traffic_kind kind;
    const struct account *account;
    char source[TRAFFIC_SOURCE_SIZE];
    struct bytes json;
};

/* A watcher. */
struct traffic_listener {
    void *context;
    void (*changed)(void *context);
    struct traffic_listener *next;
};

struct traffic {
    struct traffic_policy *policies;
    unsigned policy_count;
    struct traffic_event *events; /* a ring of TRAFFIC_KEPT; the newest is `last` */
    uint64_t last;
    uint64_t *of_tenant; /* how many events, by tenant number */
    uint32_t tenants;
    struct traffic_listener
        *listeners; /* beginnings of connections are noted while there are any */
};

void traffic_done(struct traffic *traffic);

/* Initializes an egress route: `rules` are the policy's, or narrower ones of a request. */
void traffic_source_init(struct traffic *traffic, const struct policy *policy,
                         const struct network_policy *rules, struct traffic_source *source);

/* A connection has begun (`is_over` is false), has ended or was refused. */
void traffic_note(struct traffic *traffic, const struct traffic_source *source,
                  const struct egress_record *record, bool is_over);

/* NULL: this rule was never used. */
const struct traffic_rule *traffic_find(const struct traffic *traffic, const char *policy,
                                        const char *rule);
const struct traffic_policy *traffic_find_policy(const struct traffic *traffic, const char *policy);

/* The event with this number; NULL: dropped, or not there yet. */
const struct traffic_event *traffic_event_at(const struct traffic *traffic, uint64_t number);
/* How many events there were for the account's tenant; NULL: in all. */
uint64_t traffic_told(const struct traffic *traffic, const struct account *account);
const char *traffic_kind_name(enum traffic_kind kind);

void traffic_listen(struct traffic *traffic, struct traffic_listener *listener);
void traffic_unlisten(struct traffic *traffic, struct traffic_listener *listener);
void traffic_tell(struct traffic *traffic); /* wakes all watchers */

/* Writes the families of metrics.def whose label is a rule. */
void traffic_write_metrics(const struct traffic *traffic, struct bytes *out);
