/* rules_test.c - names, addresses, request heads and rules of egress. */
#include "base/http_method.h"
#include "base/table.h"
#include "base/test.h"
#include "egress/rules.h"
#include "http1/path_match.h"
#include "policy/address.h"

#include <arpa/inet.h>
#include <string.h>

TEST(a_name_has_one_form)
{
    static const struct {
        const char *text;
        const char *name; /* NULL: none */
    } facts[] = {
        { "api.example.org", "api.example.org" },
        { "API.Example.ORG.", "api.example.org" },
        { "xn--bcher-kva.example", "xn--bcher-kva.example" },
        { "a", "a" },
        { "1.example", "1.example" },
        { "", NULL },
        { ".", NULL },
        { "a..b", NULL },
        { ".a", NULL },
        { "a.b..", NULL },
        { "-a.b", NULL },
        { "a-.b", NULL },
        { "a_b.c", NULL },
        { "a b", NULL },
        { "a%2e.b", NULL },
        { "127.0.0.1", NULL },
        { "10.1", NULL },
        { "a.0x7f", NULL },
        { "a.123", NULL },
        { "b\xc3\xbc.de", NULL },
        { "[::1]", NULL },
        { "a@b.c", NULL },
    };
    for_each(fact, facts) {
        char name[HOST_NAME_SIZE] = "";
        int done = host_name_canonical(fact->text, strlen(fact->text), name);
        expect((done == 0) == (fact->name != NULL), "'%s' gave %d", fact->text, done);
        expect(!fact->name || strcmp(name, fact->name) == 0, "'%s' gave '%s'", fact->text, name);
    }
}

TEST(special_addresses_are_no_hosts)
{
    static const struct {
        const char *address;
        bool is_special;
    } facts[] = {
        { "93.184.216.34", false },
        { "8.8.8.8", false },
        { "2606:2800:220:1::1", false },
        { "0.0.0.0", true },
        { "10.0.0.1", true },
        { "100.64.0.1", true },
        { "100.63.255.255", false },
        { "127.0.0.1", true },
        { "169.254.169.254", true },
        { "172.16.0.1", true },
        { "172.32.0.1", false },
        { "192.168.1.1", true },
        { "198.18.0.1", true },
        { "198.20.0.1", false },
        { "224.0.0.1", true },
        { "255.255.255.255", true },
        { "::", true },
        { "::1", true },
        { "64:ff9b::7f00:1", true },
        { "2002:7f00:1::", true },
        { "2001::1", true },
        { "2001:db8::1", true },
        { "fd00::1", true },
        { "fe80::1", true },
        { "fec0::1", true },
        { "ff02::1", true },
        { "::ffff:0:7f00:1", true },
        { "4000::1", true },
        { "2001:4860:4860::8888", false },
    };
    for_each(fact, facts) {
        struct in_addr four;
        struct in6_addr address;
        if (inet_pton(AF_INET, fact->address, &four) == 1)
            address_map(&four, &address);
        else
            require(inet_pton(AF_INET6, fact->address, &address) == 1, "an address");
        expect(address_is_special(&address) == fact->is_special, "%s", fact->address);
    }
}

TEST(a_path_cannot_climb)
{
    static const struct {
        const char *path;
        bool is_below;
    } facts[] = {
        { "/repos/", true },
        { "/repos/a/b?x=..", true },
        { "/repos/a%20b", true },
        { "/repos", false },
        { "/repos2/", false },
        { "/", false },
        { "/repos/../x", false },
        { "/repos/./x", false },
        { "/repos/%2e%2e/x", false },
        { "/repos/.%2E/x", false },
        { "/repos/.%20./x", false },
        { "/repos/%20..%20/x", false },
        { "/repos/.%09./x", false },
        { "/repos/a%0d/x", false },
        { "/repos/..%7f/x", false },
        { "/repos/. ./x", false },
        { "/repos/a%20b/x", true },
        { "/repos/...%20/x", true },
        { "/repos/..%2fx", false },
        { "/repos/%5c..%5c", false },
        { "/repos/..;a/x", false },
        { "/repos/..%3fa/x", false },
        { "/repos/..%23a", false },
        { "/repos/..#a", false },
        { "/repos/a%3fb/x", true },
        { "/repos/%", false },
        { "/repos/%zz", false },
        { "/repos/%252e%252e/", false },
        { "/repos/...", true },
        { "/repos/a..b", true },
        { "/repos/..", false },
        { "/repos/%c0%ae%c0%ae/", false },
        { "/repos/..%C0%AFx", false },
        { "/repos/..%e0%80%afx", false },
        { "/repos/%f0%80%80%ae./", false },
        { "/repos/%c3%a9/x", true },
        { "/repos/%e0%a4%85", true },
    };
    for_each(fact, facts) {
        struct http_text path = { fact->path, strlen(fact->path) };
        expect(http_path_is_below(path, "/repos/") == fact->is_below, "%s", fact->path);
    }
}

TEST(the_rule_that_came_closest_says_why)
{
    static struct rules rules;
    static const struct egress_rule list[] = {
        { .host = "api.example.org",
          .port_count = 1,
          .ports = { 80 },
          .methods = HTTP_GET,
          .path = "/a/" },
        { .host = "example.org", .flags = EGRESS_ANY_BELOW, .port_count = 1, .ports = { 443 } },
    };
    error err;
    for_each(rule, list)
        require(rules_add(&rules, rule, &err) == 0, "%s", err.text);
    static const struct {
        const char *request;
        enum egress_reason reason;
    } facts[] = {
        { "GET /a/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n", EGRESS_ALLOWED },
        { "GET /b HTTP/1.1\r\nHost: api.example.org\r\n\r\n", EGRESS_PATH },
        { "PUT /a/x HTTP/1.1\r\nHost: api.example.org\r\n\r\n", EGRESS_METHOD },
        { "GET /a/x HTTP/1.1\r\nHost: other.example.org\r\n\r\n", EGRESS_NO_RULE },
        { "GET /a/x HTTP/1.1\r\nHost: api.example.org:81\r\n\r\n", EGRESS_NO_RULE },
    };
    for_each(fact, facts) {
        struct http_head head;
        enum http_fault fault;
        require(http_head_read(fact->request, strlen(fact->request), 80, &head, &fault) ==
                    HTTP_WHOLE,
                "a request");
        struct decision decision = rules_for_request(&rules, &head, false);
        expect((decision.rule ? EGRESS_ALLOWED : decision.reason) == fact->reason, "%s gave %u",
               fact->request, decision.reason);
    }
    expect(rules_for_stream(&rules, "api.example.org", 80).rule == NULL, "looks inside");
    expect(rules_for_stream(&rules, "api.example.org", 443).rule != NULL, "by the second rule");
    expect(!rules_know(&rules, "example.org") && rules_know(&rules, "a.b.example.org"), "below");
}

TEST(an_unsound_rule_is_not_taken)
{
    static const struct egress_rule sound = { .host = "a.b", .port_count = 1, .ports = { 443 } };
    static struct rules rules;
    error err;
    struct egress_rule wrong[6];
    for_each(rule, wrong)
        *rule = sound;
    memset(wrong[0].host, 'a', sizeof wrong[0].host);
    memset(wrong[1].path, '/', sizeof wrong[1].path);
    wrong[2].port_count = 0;
    wrong[3].port_count = EGRESS_PORTS_MAX + 1;
    wrong[4].prefix = 129;
    wrong[5].host[0] = 'A'; /* not canonical */
    for_each(rule, wrong)
        expect(rules_add(&rules, rule, &err) < 0 && rules.count == 0, "row %ld",
               (long) (rule - wrong));
    for (unsigned i = 0; i < EGRESS_RULES_MAX; i++)
        expect(rules_add(&rules, &sound, &err) == 0, "%s", err.text);
    expect(rules_add(&rules, &sound, &err) < 0, "one too many");
}

TEST(an_unsound_endpoint_is_not_taken)
{
    static const struct egress_endpoint sound = {
        .name = "api", .host = "api.example.org", .path = "/", .port = 443, .idle_ms = 1000
    };
    static struct rules rules;
    error err;
    struct egress_endpoint wrong[7];
    for_each(endpoint, wrong)
        *endpoint = sound;
    memset(wrong[0].name, 'a', sizeof wrong[0].name);
    memset(wrong[1].host, 'a', sizeof wrong[1].host);
    memset(wrong[2].path, '/', sizeof wrong[2].path);
    wrong[3].port = 0;
    wrong[4].header_count = EGRESS_HEADERS_MAX + 1;
    wrong[5].host[0] = 'A'; /* not canonical */
    wrong[6].idle_ms = 0;   /* would wait for ever */
    for_each(endpoint, wrong)
        expect(rules_add_endpoint(&rules, endpoint, &err) < 0 && rules.endpoint_count == 0,
               "row %ld", (long) (endpoint - wrong));
    for (unsigned i = 0; i < EGRESS_ENDPOINTS_MAX; i++)
        expect(rules_add_endpoint(&rules, &sound, &err) == 0, "%s", err.text);
    expect(rules_add_endpoint(&rules, &sound, &err) < 0, "one too many");
}

static struct in6_addr four(const char *text)
{
    struct in_addr number = { 0 };
    struct in6_addr address;
    require(inet_pton(AF_INET, text, &number) == 1, "%s", text);
    address_map(&number, &address);
    return address;
}

TEST(a_network_is_opened_by_its_number_only)
{
    static struct rules rules;
    error err;
    struct in6_addr inside = four("10.1.2.3");
    struct in6_addr outside = four("10.2.0.0");
    struct in6_addr public = four("93.184.216.34");
    struct egress_rule by_number = {
        .flags = EGRESS_NETWORK, .port_count = 1, .ports = { 9200 }, .prefix = 96 + 16
    };
    struct egress_rule by_both = by_number;
    struct egress_rule by_name = { .host = "a.b", .port_count = 1, .ports = { 81 }, .path = "/x" };
    memcpy(by_number.network, &inside, sizeof inside);
    memcpy(by_both.network, &inside, sizeof inside);
    by_both.flags = EGRESS_PRIVATE;
    memcpy(by_both.host, "db.b", 5);
    require(rules_add(&rules, &by_number, &err) == 0 && rules_add(&rules, &by_both, &err) == 0 &&
                rules_add(&rules, &by_name, &err) == 0,
            "%s", err.text);
    expect(rules_for_address(&rules, &inside, 9200).rule == &rules.list[0], "inside");
    expect(rules_for_address(&rules, &inside, 9201).reason == EGRESS_LITERAL, "another port");
    expect(rules_for_address(&rules, &outside, 9200).reason == EGRESS_LITERAL, "outside");
    expect(rules_for_stream(&rules, "db.b", 9200).rule == &rules.list[1], "by its name");
    expect(rule_accepts_address(&by_both, &inside) && !rule_accepts_address(&by_both, &outside) &&
               !rule_accepts_address(&by_both, &public),
           "a name in a network");
    expect(rule_accepts_address(&by_name, &public) && !rule_accepts_address(&by_name, &inside),
           "a name on the internet");
    expect(rules_mean_http(&rules, 80) && rules_mean_http(&rules, 81) &&
               !rules_mean_http(&rules, 9200),
           "which ports carry HTTP");
}

TEST(what_is_intercepted_passes_no_other_way)
{
    static struct rules rules;
    error err;
    struct egress_rule seen = {
        .host = "a.b", .port_count = 1, .ports = { 443 }, .path = "/x", .flags = EGRESS_INTERCEPTED
    };
    struct egress_rule opaque = { .host = "c.b", .port_count = 1, .ports = { 443 } };
    struct egress_rule wrong = { .flags = EGRESS_NETWORK | EGRESS_INTERCEPTED,
                                 .port_count = 1,
                                 .ports = { 443 } };
    struct http_head head = { .name = "a.b", .port = 443, .path = { "/x", 2 } };
    require(rules_add(&rules, &seen, &err) == 0 && rules_add(&rules, &opaque, &err) == 0, "%s",
            err.text);
    expect(rules_add(&rules, &wrong, &err) < 0, "an address has no certificate");
    expect(rules_intercept(&rules, "a.b", 443) == &rules.list[0], "its name and port");
    expect(!rules_intercept(&rules, "a.b", 444) && !rules_intercept(&rules, "c.b", 443), "others");
    expect(!rules_for_stream(&rules, "a.b", 443).rule, "unseen");
    expect(rules_for_stream(&rules, "c.b", 443).rule == &rules.list[1], "beside it");
    expect(!rules_mean_http(&rules, 443), "the port is no plain one");
    expect(rules_for_request(&rules, &head, true).rule == &rules.list[0], "out of its TLS");
    expect(!rules_for_request(&rules, &head, false).rule, "plain");
    head.path = (struct http_text){ "/y", 2 };
    expect(rules_for_request(&rules, &head, true).reason == EGRESS_PATH, "another path");
}

TESTS(CASE(what_is_intercepted_passes_no_other_way), CASE(a_name_has_one_form),
      CASE(special_addresses_are_no_hosts), CASE(a_path_cannot_climb),
      CASE(the_rule_that_came_closest_says_why), CASE(an_unsound_rule_is_not_taken),
      CASE(an_unsound_endpoint_is_not_taken), CASE(a_network_is_opened_by_its_number_only))
