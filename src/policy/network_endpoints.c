/* network_endpoints.c - see network_endpoints.h. The methods and paths of an endpoint become
 * ordinary rules, for the host NAME.endpoint. */
#include "policy/network_endpoints.h"

#include "base/http_method.h"
#include "base/table.h"
#include "model/limits.h"
#include "policy/address.h"
#include "policy/network_parts.h"

#include <stdio.h>
#include <string.h>

enum { PORT_HTTP = 80, RATE_MAX = 1000000, IDLE_MIN_MS = 1000, IDLE_MAX_MS = 3600000 };

static const char endpoint_characters[] = "abcdefghijklmnopqrstuvwxyz0123456789-";

static int read_url(const struct yaml *yaml, const struct yaml_node *value,
                    struct network_item *item, error *err)
{
    if (value->kind == YAML_TEXT && endpoint_url_read(value->text, &item->endpoint.url) == 0)
        return 0;
    return yaml_fail(yaml, value, err,
                     "url names one host; write https://api.example.org/v1, or "
                     "http://localhost:11434 for a server of this machine");
}

static int read_rate(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_item *item, error *err)
{
    unsigned long rate = 0;
    if (network_read_number(yaml, value, RATE_MAX, &rate, err) < 0)
        return -1;
    item->endpoint.rate = (uint32_t) rate;
    return 0;
}

static int read_idle(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_item *item, error *err)
{
    uint64_t idle_ms;
    if (value->kind != YAML_TEXT || limit_parse(LIMIT_wall, value->text, &idle_ms, err) < 0 ||
        idle_ms < IDLE_MIN_MS || idle_ms > IDLE_MAX_MS)
        return yaml_fail(yaml, value, err, "no time from 1s to 1h; write 30s");
    item->endpoint.idle_ms = (uint32_t) idle_ms;
    return 0;
}

static bool is_header(const struct yaml_node *name)
{
    return name->kind == YAML_TEXT && name->length > 0 && name->length < ENDPOINT_HEADER_SIZE &&
           strspn(name->text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
               name->length;
}

static int read_headers(const struct yaml *yaml, const struct yaml_node *value,
                        struct network_item *item, error *err)
{
    struct network_endpoint *endpoint = &item->endpoint;
    if (value->kind != YAML_SEQUENCE || value->children == 0 ||
        value->children > ENDPOINT_HEADERS_MAX)
        return yaml_fail(yaml, value, err,
                         "headers lists 1 to %d names; write [Authorization], their values belong "
                         "into the secrets file",
                         ENDPOINT_HEADERS_MAX);
    for (const struct yaml_node *name = yaml_first(yaml, value); name;
         name = yaml_next(yaml, name)) {
        if (!is_header(name))
            return yaml_fail(yaml, name, err,
                             "no name of a header; write Authorization, its value belongs into the "
                             "secrets file");
        memcpy(endpoint->headers[endpoint->header_count++], name->text, name->length + 1);
    }
    return 0;
}

static int read_network(const struct yaml *yaml, const struct yaml_node *value,
                        struct network_item *item, error *err)
{
    struct network_endpoint *endpoint = &item->endpoint;
    if (value->kind != YAML_TEXT ||
        network_read(value->text, endpoint->network, &endpoint->prefix) < 0)
        return yaml_fail(yaml, value, err,
                         "network is a block of addresses; write 10.1.0.0/16, host bits zero");
    endpoint->has_network = true;
    return 0;
}

static const struct network_key key_list[] = {
    { "url", read_url },   { "methods", network_read_methods }, { "paths", network_read_paths },
    { "rate", read_rate }, { "headers", read_headers },         { "network", read_network },
    { "idle", read_idle },
};

static const struct network_keys keys = { key_list, COUNT_OF(key_list),
                                          "url, methods, paths, rate, headers, network, idle" };

static int read_item(const struct yaml *yaml, const struct yaml_node *value,
                     struct network_item *item, error *err)
{
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err, "no endpoint; write {url: https://api.example.org}");
    if (network_read_item(yaml, value, &keys, item, err) < 0)
        return -1;
    if (!item->endpoint.url.host[0])
        return yaml_fail(yaml, value, err, "it lacks its url; write url: https://api.example.org");
    return 0;
}

static int read_name(const struct yaml *yaml, const struct yaml_node *key,
                     const struct network_policy *policy, struct network_endpoint *endpoint,
                     error *err)
{
    if (key->kind != YAML_TEXT || key->length == 0 || key->length >= ENDPOINT_NAME_SIZE ||
        strspn(key->text, endpoint_characters) != key->length || key->text[0] == '-' ||
        key->text[key->length - 1] == '-')
        return yaml_fail(yaml, key, err,
                         "a name of an endpoint has 1 to %d of a-z, 0-9 and hyphens",
                         ENDPOINT_NAME_SIZE - 1);
    memcpy(endpoint->name, key->text, key->length + 1);
    for (unsigned i = 0; i < policy->endpoint_count; i++)
        if (strcmp(policy->endpoints[i].name, endpoint->name) == 0)
            return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", endpoint->name);
    if (policy->endpoint_count == NETWORK_ENDPOINTS_MAX)
        return yaml_fail(yaml, key, err, "more than %d endpoints; remove some",
                         NETWORK_ENDPOINTS_MAX);
    return 0;
}

static void make_rule(struct network_item *item, unsigned endpoint)
{
    struct network_rule *rule = &item->rule;
    rule->port_count = 1;
    rule->ports[0] = PORT_HTTP;
    rule->methods = item->has_methods ? rule->methods : HTTP_GET | HTTP_HEAD;
    rule->endpoint = endpoint;
    (void) snprintf(rule->host, sizeof rule->host, "%s" ENDPOINT_SUFFIX, item->endpoint.name);
}

int network_endpoints_read(const struct yaml *yaml, const struct yaml_node *value,
                           struct network_policy *policy, error *err)
{
    if (value->kind != YAML_MAPPING || value->children == 0)
        return yaml_fail(yaml, value, err,
                         "endpoints is a mapping; write {github: {url: https://api.example.org}}");
    for (const struct yaml_node *key = yaml_first(yaml, value); key;) {
        const struct yaml_node *part = yaml_next(yaml, key);
        struct network_item item = { 0 };
        if (read_name(yaml, key, policy, &item.endpoint, err) < 0 ||
            read_item(yaml, part, &item, err) < 0)
            return -1;
        make_rule(&item, policy->endpoint_count);
        if (network_add_rules(yaml, part, &item, policy, err) < 0)
            return -1;
        policy->endpoints[policy->endpoint_count++] = item.endpoint;
        key = yaml_next(yaml, part);
    }
    return 0;
}
