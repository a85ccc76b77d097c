/* network_policy.h - the network that a policy allows, as plain values. What is not listed is
 * refused; an empty list is no network (docs/network.md). */
#pragma once

#include "base/endpoint_url.h"
#include "base/host_name.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    NETWORK_RULES_MAX = 16,
    NETWORK_PORTS_MAX = 8, /* of one rule, and of all rules together */
    NETWORK_PATH_SIZE = 64,
    NETWORK_CONNECTIONS = 32, /* at once, if the policy does not say */
    NETWORK_ENDPOINTS_MAX = 8,
    ENDPOINT_NAME_SIZE = 32,
    ENDPOINT_HEADERS_MAX = 4,
    ENDPOINT_HEADER_SIZE = 48,
    ENDPOINT_IDLE_MS = 120000, /* if the policy does not say */
    NETWORK_SETS_MAX = 4,
    NETWORK_SET_NAME_SIZE = 64, /* as POLICY_NAME_SIZE */
};

#define ENDPOINT_SUFFIX ".endpoint" /* follows the name of an endpoint in URLs */

struct network_rule {
    unsigned from_set;         /* 1 for the first of `sets`; 0: the policy's own */
    char host[HOST_NAME_SIZE]; /* canonical; "" for a rule of addresses */
    bool any_below;            /* "*.host": any number of labels below it */
    bool has_network;          /* `network` may be used although it is not of the internet */
    unsigned char network[16]; /* IPv4 mapped */
    unsigned prefix;
    unsigned port_count;
    uint16_t ports[NETWORK_PORTS_MAX];
    uint32_t methods;             /* bits of enum http_method; 0: all */
    char path[NETWORK_PATH_SIZE]; /* prefix of the path; "": any path */
    bool intercept;               /* its ports carry TLS, which is intercepted */
    unsigned endpoint;            /* index of its endpoint, if the host ends in ENDPOINT_SUFFIX */
    unsigned origin;              /* for a narrowed request: index of the rule of the policy */
};

/* One upstream that requests to http://NAME.endpoint/ go to. */
struct network_endpoint {
    char name[ENDPOINT_NAME_SIZE];
    struct endpoint_url url;
    uint32_t rate;    /* requests a minute, all runs together; 0: not limited */
    uint32_t idle_ms; /* longest time without a byte in either direction; 0: ENDPOINT_IDLE_MS */
    unsigned header_count;
    char headers[ENDPOINT_HEADERS_MAX][ENDPOINT_HEADER_SIZE]; /* whose values are secrets */
    bool has_network; /* the upstream's addresses may lie in this network */
    unsigned char network[16];
    unsigned prefix;
};

struct network_policy {
    unsigned count;
    struct network_rule rules[NETWORK_RULES_MAX];
    unsigned endpoint_count;
    struct network_endpoint endpoints[NETWORK_ENDPOINTS_MAX];
    uint64_t sent;     /* bytes that a run may send, all connections together; 0 = not limited */
    uint64_t received; /* the same for received bytes */
    uint32_t connections;
    unsigned set_count; /* named sets; their rules are among `rules` (policy/network_set.h) */
    char sets[NETWORK_SETS_MAX][NETWORK_SET_NAME_SIZE];
    unsigned listen_count; /* ports to listen on inside, if these are not those of the rules */
    uint16_t listens[NETWORK_PORTS_MAX];
    bool is_wish; /* of a request: endpoints are ordinary hosts */
};

/* All ports of all rules, each once, in order. Returns how many. */
unsigned network_policy_ports(const struct network_policy *policy,
                              uint16_t ret_ports[NETWORK_PORTS_MAX]);

/* True if TLS is intercepted for some host: the sandbox then gets certificates to trust. */
bool network_policy_intercepts(const struct network_policy *policy);

/* True for NAME.endpoint. */
bool network_is_endpoint(const char *host);

/* The endpoint of a rule; NULL if the rule is for a host. */
const struct network_endpoint *network_rule_endpoint(const struct network_policy *policy,
                                                     const struct network_rule *rule);

/* As network_policy_ports(); false if there are more ports than fit. */
bool network_policy_has_all_ports(const struct network_policy *policy,
                                  uint16_t ret_ports[NETWORK_PORTS_MAX]);

/* Writes a rule as "api.github.com:443", "*.debian.org:80 GET,HEAD /debian/". Digests of policies
 * are made of these texts, so the longest rule and the longest endpoint must fit. */
enum { NETWORK_RULE_TEXT = 768 };
void network_rule_write(const struct network_rule *rule, char ret_text[NETWORK_RULE_TEXT]);

/* "github.endpoint -> https://api.github.com:443 with Authorization, 60 a minute, idle 30000 ms".
 */
void network_endpoint_write(const struct network_endpoint *endpoint,
                            char ret_text[NETWORK_RULE_TEXT]);
