/* rules.h - what a channel may reach. Read-only after the channel was opened; pure functions. */
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

/* Adds a rule from gloveboxd. Fails ERR_PROTOCOL if it is invalid. */
int rules_add(struct rules *rules, const struct egress_rule *rule, error *err);

/* Adds an endpoint for rules that follow. Fails ERR_PROTOCOL if it is invalid. */
int rules_add_endpoint(struct rules *rules, const struct egress_endpoint *endpoint, error *err);

/* Where the rule's requests go; NULL for the host itself. */
const struct egress_endpoint *rules_endpoint(const struct rules *rules,
                                             const struct egress_rule *rule);

/* The rule that allows it; or NULL, and the reason of the refusal. */
struct decision {
    const struct egress_rule *rule;
    enum egress_reason reason;
};

/* May the name be looked up? Yes if a rule names it. */
bool rules_know(const struct rules *rules, const char *name);

/* May bytes that are not inspected (TLS, raw TCP) be sent to name:port? A rule with methods or
 * paths does not allow that. */
struct decision rules_for_stream(const struct rules *rules, const char *name, uint16_t port);

/* The rule by which TLS to name:port is intercepted, NULL if none. It takes precedence over rules
 * that allow the name without inspection. */
const struct egress_rule *rules_intercept(const struct rules *rules, const char *name,
                                          uint16_t port);

/* May a connection to name:port begin? Yes if its TLS is intercepted, or its bytes are allowed. */
struct decision rules_for_connection(const struct rules *rules, const char *name, uint16_t port);

/* May this HTTP request pass, plain or intercepted? A rule that intercepts allows no plain request.
 */
struct decision rules_for_request(const struct rules *rules, const struct http_head *head,
                                  bool is_intercepted);

/* May a connection to this literal address be made? */
struct decision rules_for_address(const struct rules *rules, const struct in6_addr *address,
                                  uint16_t port);

/* True if `port` carries plain HTTP in this channel: 80, or rules for it have methods or paths. */
bool rules_mean_http(const struct rules *rules, uint16_t port);

/* True if the rule allows this address for its host: a public one, or one in its `network`. */
bool rule_accepts_address(const struct egress_rule *rule, const struct in6_addr *address);
