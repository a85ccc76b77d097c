/* rules.h - what a channel may reach, and the answer to each question about it. Read-only after the
 * channel has opened; pure functions. */
#pragma once

#include "contract/egress.h"
#include "http1/request_head.h"

#include <netinet/in.h>

struct rules {
    uint32_t count;
    struct egress_rule list[EGRESS_RULES_MAX];
    uint32_t endpoint_count;
    struct egress_endpoint endpoints[EGRESS_ENDPOINTS_MAX];
};

/* Takes one rule from gloveboxd. Fails ERR_PROTOCOL if it is not sound. */
int rules_add(struct rules *rules, const struct egress_rule *rule, error *err);

/* Takes the endpoint that rules to come lead to. Fails ERR_PROTOCOL if it is not sound. */
int rules_add_endpoint(struct rules *rules, const struct egress_endpoint *endpoint, error *err);

/* Where the rule's requests go; NULL for the host itself. */
const struct egress_endpoint *rules_endpoint(const struct rules *rules,
                                             const struct egress_rule *rule);

/* The answer: the rule that allows it, or NULL and why not. */
struct decision {
    const struct egress_rule *rule;
    enum egress_reason reason;
};

/* Whether a name may be looked up: some rule speaks of it. */
bool rules_know(const struct rules *rules, const char *name);

/* Whether bytes may flow to name:port whose meaning is not looked at (TLS, raw TCP). A rule that
 * asks for methods or paths does not allow that. */
struct decision rules_for_stream(const struct rules *rules, const char *name, uint16_t port);

/* The rule that has TLS to name:port intercepted, NULL if none does. Where one does, no byte passes
 * unseen, whatever other rules say of the name. */
const struct egress_rule *rules_intercept(const struct rules *rules, const char *name,
                                          uint16_t port);

/* Whether a connection to name:port may begin: its TLS is intercepted, or its bytes may flow. */
struct decision rules_for_connection(const struct rules *rules, const char *name, uint16_t port);

/* Whether this HTTP request may pass, plain or out of TLS that is intercepted. A rule that has TLS
 * intercepted lets no plain one pass. */
struct decision rules_for_request(const struct rules *rules, const struct http_head *head,
                                  bool is_intercepted);

/* Whether a literal address may be connected to. */
struct decision rules_for_address(const struct rules *rules, const struct in6_addr *address,
                                  uint16_t port);

/* True if port `port` carries plain HTTP in this channel: it is 80, or rules for it ask for methods
 * or paths. */
bool rules_mean_http(const struct rules *rules, uint16_t port);

/* True if the rule lets its host have this address: a public one, or one it opens by number. */
bool rule_accepts_address(const struct egress_rule *rule, const struct in6_addr *address);
