/* network_file_test.c - the network part of a policy file. */
#include "policy/policy.h"

#include "base/table.h"
#include "base/test.h"
#include "policy/address.h"
#include "policy/network_policy.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HEAD      "name: t\ntemplate: t\nlanguages: [python]\nnetwork:\n"
#define RULE      HEAD "  allow:\n    - "
#define END       HEAD "  endpoints: {"
#define ONE(name) name ": {url: https://x.org}, "
#define NINE_ENDPOINTS \
    ONE("1")           \
    ONE("2") ONE("3") ONE("4") ONE("5") ONE("6") ONE("7") ONE("8") "9: {url: https://x.org}"
#define EIGHT "{host: a.b, ports: [1, 2, 3, 4, 5, 6, 7, 8]}"

static int parse(const char *text, struct policy *policy, error *err)
{
    struct policy_source source = { text, strlen(text), "f", "" };
    return policy_parse(&source, policy, err);
}

static const struct {
    const char *text;
    const char *failure;
} wrong_rules[] = {
    { HEAD "  alow: []\n", "f:5:3: unknown key; keys are allow" },
    { HEAD "  allow: x\n", "allow is a list" },
    { HEAD "  allow: []\n  allow: []\n", "twice" },
    { HEAD "  sets: pip\n", "sets is a list of at most 4; write [pip]" },
    { HEAD "  sets: [a, b, c, d, e]\n", "sets is a list of at most 4" },
    { HEAD "  sets: [../pip]\n", "no name of a set" },
    { HEAD "  sets: [[pip]]\n", "no name of a set" },
    { HEAD "  sets: [pip, pip]\n", "'pip' is there twice" },
    { HEAD "  sets: [pip]\n", "f:4:1: there is no set 'pip'; see glovebox policy sets" },
    { HEAD "  bytes: 0\n", "no amount of bytes" },
    { HEAD "  bytes: much\n", "no amount of bytes" },
    { HEAD "  bytes:\n", "no amount of bytes" },
    { HEAD "  received: [1]\n", "no amount of bytes" },
    { HEAD "  connections: 0\n", "no number from 1 to 1024" },
    { HEAD "  connections: 1025\n", "no number from 1 to 1024" },
    { HEAD "  connections: +1\n", "no number" },
    { HEAD "  connections: 99999999999999999999999\n", "no number" },
    { HEAD "  connections: [1]\n", "no number" },
    { RULE "[a]\n", "no rule; write {host:" },
    { RULE "127.0.0.1\n", "is an address; write it as network" },
    { RULE "0x7f.1\n", "is an address" },
    { RULE "a_b.org\n", "is no host name" },
    { RULE "\"*.org\"\n", "has many owners" },
    { RULE "\"*.\"\n", "is no host name" },
    { RULE "{host: [a.b]}\n", "host is a name" },
    { RULE "{host: localhost, ports: [8080]}\n", "write {network: 127.0.0.1/32}" },
    { RULE "LocalHost.\n", "localhost is the sandbox itself" },
    { RULE "{host: }\n", "host is a name" },
    { RULE "{host: a.b, hots: c}\n", "unknown key; keys are host" },
    { RULE "{host: a.b, host: c.d}\n", "'host' is there twice" },
    { RULE "{ports: [1]}\n", "a rule names a host or a network" },
    { RULE "{network: 10.0.0.1/8}\n", "network is a block" },
    { RULE "{network: 10.0.0.0/33}\n", "network is a block" },
    { RULE "{network: 010.0.0.0/8}\n", "network is a block" },
    { RULE "{network: 10.0.0.0/}\n", "network is a block" },
    { RULE "{network: 10.0.0.0/+8}\n", "network is a block" },
    { RULE "{network: /8}\n", "network is a block" },
    { RULE "{network: x/8}\n", "network is a block" },
    { RULE "{network: \"fe80::1%eth0/64\"}\n", "network is a block" },
    { RULE "{network: [10.0.0.0/8]}\n", "network is a block" },
    { RULE "{host: a.b, ports: 443}\n", "ports is a list" },
    { RULE "{host: a.b, ports: []}\n", "ports is a list" },
    { RULE "{host: a.b, ports: [1, 2, 3, 4, 5, 6, 7, 8, 9]}\n", "ports is a list" },
    { RULE "{host: a.b, ports: [0]}\n", "no number from 1 to 65535" },
    { RULE "{host: a.b, ports: [65536]}\n", "no number from 1 to 65535" },
    { RULE "{host: a.b, ports: [53]}\n", "port 53 is taken inside" },
    { RULE "{host: a.b, ports: [3128]}\n", "port 3128 is taken inside" },
    { RULE EIGHT "\n    - {host: c.d, ports: [9]}\n", "more than 8 ports in all rules" },
    { RULE "{host: a.b, ports: [80], methods: GET}\n", "methods is a list" },
    { RULE "{host: a.b, ports: [80], methods: [get]}\n", "no method; they are" },
    { RULE "{host: a.b, ports: [80], methods: [[GET]]}\n", "no method" },
    { RULE "{host: a.b, ports: [80], paths: /x}\n", "paths is a list" },
    { RULE "{host: a.b, ports: [80], paths: [x]}\n", "a path begins with a slash" },
    { RULE "{host: a.b, ports: [80], paths: [/a%20b]}\n", "a path begins with a slash" },
    { RULE "{host: a.b, ports: [80], paths: [[/a]]}\n", "a path begins with a slash" },
    { RULE "{host: a.b, methods: [GET]}\n", "cannot be seen inside TLS" },
    { RULE "{host: a.b, ports: [80, 443], paths: [/a]}\n", "cannot be seen inside TLS" },
    { RULE "{host: a.b, paths: [/a], intercept: false}\n", "opened by intercept: true" },
    { RULE "{host: a.b, intercept: yes}\n", "intercept is true or false" },
    { RULE "{host: a.b, intercept: [true]}\n", "intercept is true or false" },
    { RULE "{host: a.b, ports: [80, 443], intercept: true}\n", "port 80 has no TLS" },
    { RULE "{network: 10.0.0.0/8, intercept: true}\n", "intercept belongs to a host" },
    { RULE "{network: 10.0.0.0/8, ports: [80], methods: [GET]}\n", "belong to a host" },
    { END "a: {url: https://x.org, network: 10.0.0.1/8}}\n", "network is a block of addresses" },
    { END "a: {url: https://x.org, network: [x]}}\n", "network is a block of addresses" },
    { END "a: {url: https://x.org, rate: 0}}\n", "no number from 1 to 1000000" },
    { END "a: {url: https://x.org, headers: []}}\n", "headers lists 1 to 4 names" },
    { END "a: {url: https://x.org, url: https://y.org}}\n", "'url' is there twice" },
    { END "a: {url: https://x.org:8x}}\n", "url names one host" },
    { END "a: {url: https://x.org:123456}}\n", "url names one host" },
    { END "a: {url: https://x.org//v1}}\n", "url names one host" },
    { END "a: https://x.org}\n", "no endpoint; write {url: " },
    { END "a: {url: https://x.org}, a: {url: https://x.org}}\n", "'a' is there twice; remove one" },
    { END "a-: {url: https://x.org}}\n", "a name of an endpoint" },
    { END NINE_ENDPOINTS "}\n", "more than 8 endpoints" },
    { END "a: {url: https://x.org, paths: [/1, /2, /3, /4, /5, /6, /7, /8, /9, /10, /11, /12, /13, "
          "/14, /15, /16, /17]}}\n",
      "more than 16 rules" },
    { RULE "{host: a.b, ports: [80], paths: [/1, /2, /3, /4, /5, /6, /7, /8, /9, /10, /11, "
           "/12, /13, /14, /15, /16, /17]}\n",
      "more than 16 rules" },
};

TEST(a_wrong_rule_says_where_and_what_to_write)
{
    for_each(fact, wrong_rules) {
        static struct policy policy;
        error err = { 0 };
        int result = parse(fact->text, &policy, &err);
        expect(result < 0 && strstr(err.text, fact->failure), "'%s' gave %d, '%s'", fact->text,
               result, err.text);
    }
}

TEST(a_rule_is_written_as_it_holds)
{
    static const struct {
        const char *text;
        const char *written; /* of the last rule */
        unsigned count;
    } facts[] = {
        { RULE "API.Example.ORG.\n", "api.example.org:443", 1 },
        { RULE "\"*.example.org\"\n", "*.example.org:443", 1 },
        { RULE "{host: a.b, ports: [80, 81], methods: [GET, HEAD], paths: [/x/, /y]}\n",
          "a.b:80,81 GET,HEAD /y", 2 },
        { RULE "{host: a.b, methods: [GET], paths: [/x/, /y], intercept: true}\n",
          "a.b:443 GET /y intercepted", 2 },
        { RULE "{host: \"*.a.b\", ports: [8443], intercept: true}\n", "*.a.b:8443 intercepted", 1 },
        { RULE "{host: a.b, intercept: false}\n", "a.b:443", 1 },
        { RULE "{network: 10.2.3.4/32, ports: [9200]}\n", "10.2.3.4/32:9200", 1 },
        { RULE "{network: 10.2.3.4, ports: [9200]}\n", "10.2.3.4/32:9200", 1 },
        { RULE "{network: \"2001:db8::/32\"}\n", "2001:db8::/32:443", 1 },
        { RULE "{host: db.b, network: 10.1.0.0/16}\n", "db.b in 10.1.0.0/16:443", 1 },
        { HEAD "  allow: []\n", "", 0 },
        { END "a: {url: http://x.org:8080/v1/, network: 10.0.0.0/8, methods: [POST], paths: [/b/, "
              "/c]}}\n",
          "a.endpoint:80 POST /c", 2 },
    };
    for_each(fact, facts) {
        static struct policy policy;
        error err = { 0 };
        char text[NETWORK_RULE_TEXT] = "";
        int result = parse(fact->text, &policy, &err);
        expect(result == 0, "'%s': %s", fact->text, err.text);
        if (result < 0)
            continue;
        if (policy.route.count > 0)
            network_rule_write(&policy.route.rules[policy.route.count - 1], text);
        expect(policy.route.count == fact->count && strcmp(text, fact->written) == 0,
               "'%s' gave %u rules, '%s'", fact->text, policy.route.count, text);
    }
}

TEST(an_endpoint_is_written_as_it_holds)
{
    static const struct {
        const char *text, *written;
    } facts[] = {
        { "a: {url: https://X.org}}\n", "a.endpoint -> https://x.org:443" },
        { "a: {url: http://x.org:8080/v1/, network: 10.0.0.0/8, rate: 5, idle: 30s, "
          "headers: [A, B-c]}}\n",
          "a.endpoint -> http://x.org:8080/v1 in 10.0.0.0/8 with A, B-c, 5 a minute, idle 30 s" },
    };
    for_each(fact, facts) {
        static struct policy policy;
        char text[NETWORK_RULE_TEXT] = "";
        char file[512];
        error err = { 0 };
        (void) snprintf(file, sizeof file, "%s%s", END, fact->text);
        expect(parse(file, &policy, &err) == 0, "'%s': %s", file, err.text);
        network_endpoint_write(&policy.route.endpoints[0], text);
        expect(strcmp(text, fact->written) == 0, "'%s' gave '%s'", fact->text, text);
    }
}

TEST(bounds_are_what_the_file_says)
{
    static struct policy policy;
    error err = { 0 };
    require(parse(HEAD "  allow: [a.b]\n  bytes: 10MiB\n  received: 1GiB\n  connections: 7\n",
                  &policy, &err) == 0,
            "%s", err.text);
    expect(policy.network == POLICY_NETWORK_RULES && policy.route.sent == 10 << 20 &&
               policy.route.received == 1 << 30 && policy.route.connections == 7,
           "%u connections", policy.route.connections);
    require(parse(HEAD "  allow: [a.b]\n", &policy, &err) == 0, "%s", err.text);
    expect(policy.route.connections == NETWORK_CONNECTIONS && policy.route.sent == 0, "defaults");
}

TEST(a_block_of_addresses_holds_its_own)
{
    static const struct {
        const char *network;
        const char *address;
        bool is_within;
    } facts[] = {
        { "10.1.0.0/16", "::ffff:10.1.255.255", true },
        { "10.1.0.0/16", "::ffff:10.2.0.0", false },
        { "10.1.128.0/17", "::ffff:10.1.127.255", false },
        { "0.0.0.0/0", "::ffff:8.8.8.8", true },
        { "0.0.0.0/0", "2001:db8::1", false },
        { "2001:db8::/33", "2001:db8:7fff::", true },
        { "2001:db8::/33", "2001:db8:8000::", false },
    };
    for_each(fact, facts) {
        unsigned char network[16];
        unsigned prefix;
        struct in6_addr address;
        require(network_read(fact->network, network, &prefix) == 0 &&
                    inet_pton(AF_INET6, fact->address, &address) == 1,
                "%s", fact->network);
        expect(address_is_within(&address, network, prefix) == fact->is_within, "%s in %s",
               fact->address, fact->network);
    }
    struct in6_addr loopback = IN6ADDR_LOOPBACK_INIT;
    struct in6_addr any = IN6ADDR_ANY_INIT;
    expect(address_is_loopback(&loopback) && !address_is_loopback(&any), "::1");
}

static const struct {
    const char *set;
    const char *failure; /* NULL: valid */
} sets[] = {
    { "name: s\ndescription: ours\nallow: [a.b]\nenv: {A: x}\n", NULL },
    { "name: other\nallow: [a.b]\n", "the name differs" },
    { "name: s\n", "the set allows nothing" },
    { "name: s\nallow: [a.b]\nsets: [t]\n", "unknown key" },
    { "name: [s]\nallow: [a.b]\n", "unknown key or wrong value" },
    { "- a\n", "a set is a mapping" },
    { "name: s\nallow: [127.0.0.1]\n", "is an address" },
    { "name: s\nallow: [a.b]\nenv: [x]\n", "env is a mapping" },
    { "name: s\nallow: [a.b]\nenv: {A: [x]}\n", "no variable" },
    { "name: s\nallow: [a.b]\nenv: {LD_PRELOAD: x}\n", "LD_" },
    { "name: s\nallow: [a.b]\nenv: {A: 1, B: 1, C: 1, D: 1, E: 1, F: 1, G: 1, H: 1, I: 1, J: 1, "
      "K: 1, L: 1, M: 1, N: 1, O: 1, P: 1, Q: 1}\n",
      "more than 16 variables" },
    { "name: s\nallow: [{host: a.b, ports: [1, 2, 3, 4, 5, 6, 7, 8]}]\n", "more than 8 ports" },
    { "name: s\nallow: [a.a, a.b, a.c, a.d, a.e, a.f, a.g, a.h, a.i, a.j, a.k, a.l, a.m, a.n, "
      "a.o, a.p]\n",
      "more than 16 rules" },
};

TEST(a_set_is_kept_or_refused)
{
    static const char text[] = HEAD "  allow: [own.b]\n  sets: [s]\nenv: {B: mine}\n";
    static struct policy policy;
    char folder[] = "/tmp/network_set.XXXXXX";
    char place[64];
    char file[96];
    require(mkdtemp(folder), "no folder");
    (void) snprintf(place, sizeof place, "%s/sets", folder);
    (void) snprintf(file, sizeof file, "%s/s.yaml", place);
    require(mkdir(place, 0700) == 0, "no folder of sets");
    for_each(fact, sets) {
        struct policy_source source = { text, sizeof text - 1, "f", folder };
        error err = { 0 };
        FILE *out = fopen(file, "we");
        require(out && fputs(fact->set, out) >= 0 && fclose(out) == 0, "no file");
        int result = policy_parse(&source, &policy, &err);
        expect((result == 0) == !fact->failure, "'%s' gave %d, '%s'", fact->set, result, err.text);
        expect(!fact->failure || strstr(err.text, fact->failure), "'%s': '%s'", fact->set,
               err.text);
        expect(result < 0 || (policy.route.count == 2 && policy.route.rules[1].from_set == 1 &&
                              policy.variable_count == 2),
               "%u rules, %zu variables", policy.route.count, policy.variable_count);
    }
    (void) unlink(file);
    (void) rmdir(place);
    (void) rmdir(folder);
}

/* Digests are made from these texts, so nothing may be cut off. */
TEST(the_longest_rule_and_endpoint_are_written_whole)
{
    struct network_rule rule = { .any_below = true, .has_network = true, .prefix = 128 };
    struct network_endpoint endpoint = { .has_network = true, .prefix = 128 };
    char text[NETWORK_RULE_TEXT];
    memset(rule.host, 'h', sizeof rule.host - 1);
    memset(rule.network, 0xff, sizeof rule.network);
    memset(rule.path, 'p', sizeof rule.path - 1);
    rule.path[sizeof rule.path - 2] = '!';
    rule.methods = UINT32_MAX;
    rule.port_count = NETWORK_PORTS_MAX;
    for (unsigned i = 0; i < NETWORK_PORTS_MAX; i++)
        rule.ports[i] = (uint16_t) (65000 + i);
    network_rule_write(&rule, text);
    expect(text[strlen(text) - 1] == '!', "cut at '%s'", text);
    rule.intercept = true;
    network_rule_write(&rule, text);
    expect(strstr(text, "! intercepted"), "cut at '%s'", text);

    memset(endpoint.name, 'n', sizeof endpoint.name - 1);
    memset(endpoint.url.host, 'h', sizeof endpoint.url.host - 1);
    memset(endpoint.url.path, 'p', sizeof endpoint.url.path - 1);
    memset(endpoint.network, 0xff, sizeof endpoint.network);
    endpoint.url.is_tls = true;
    endpoint.url.port = 65535;
    endpoint.rate = 1000000;
    endpoint.idle_ms = 3600000;
    endpoint.header_count = ENDPOINT_HEADERS_MAX;
    for_each(header, endpoint.headers)
        memset(*header, 'x', sizeof *header - 1);
    network_endpoint_write(&endpoint, text);
    expect(strstr(text, ", 1000000 a minute, idle 3600 s"), "cut at '%s'", text);
}

TESTS(CASE(a_wrong_rule_says_where_and_what_to_write), CASE(a_rule_is_written_as_it_holds),
      CASE(bounds_are_what_the_file_says), CASE(a_block_of_addresses_holds_its_own),
      CASE(a_set_is_kept_or_refused), CASE(the_longest_rule_and_endpoint_are_written_whole),
      CASE(an_endpoint_is_written_as_it_holds))
