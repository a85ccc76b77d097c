/* network_narrow_test.c - a request narrows the network, or an error names the rule that is
 * missing. */
#include "base/table.h"
#include "base/test.h"
#include "policy/network_narrow.h"

#include <string.h>

static const char file[] =
    "name: web\ntemplate: t\nlanguages: [python]\nnetwork:\n"
    "  allow:\n"
    "    - {host: api.example.org, ports: [443, 8443]}\n"
    "    - {host: '*.files.example.org', ports: [80], methods: [GET, POST], paths: ['/a/', '/b']}\n"
    "    - {host: db.example.org, network: 10.1.0.0/16, ports: [5432]}\n"
    "    - {network: 10.2.0.0/16, ports: [9200]}\n"
    "  endpoints: {hub: {url: https://hub.example.org, paths: [/repos/]}}\n"
    "  bytes: 1MiB\n  connections: 8\n";

/* Returns the rules that remain, one after another, or the failure. */
static const char *narrowed(const struct policy *policy, const char *text, error *err)
{
    static char all[NETWORK_RULES_MAX * (NETWORK_RULE_TEXT + 2)];
    static struct network_wish wish;
    static struct network_policy left;
    size_t used = 0;
    all[0] = '\0';
    if (network_wish_read(text, strlen(text), &wish, err) < 0 ||
        network_narrow(policy, &wish, &left, err) < 0)
        return err->text;
    for (unsigned i = 0; i < left.count; i++) {
        char rule[NETWORK_RULE_TEXT];
        network_rule_write(&left.rules[i], rule);
        used += (size_t) snprintf(all + used, sizeof all - used, "%s; ", rule);
    }
    return all;
}

static const struct {
    const char *wish, *left;
} facts[] = {
    { "none", "" },
    { "\"none\"", "" },
    { "{\"allow\": []}", "" },
    { "{\"allow\": [\"api.example.org\"]}", "api.example.org:443; " },
    { "{\"allow\": [{\"host\": \"api.example.org\", \"ports\": [8443]}]}",
      "api.example.org:8443; " },
    { "{\"allow\": [{\"host\": \"api.example.org\", \"ports\": [443, 80]}]}",
      "network: no rule of policy web allows api.example.org:80; ask" },
    { "{\"allow\": [\"other.example.org\"]}",
      "network: no rule of policy web allows other.example.org:443;" },
    { "{\"allow\": [\"*.example.org\"]}",
      "network: no rule of policy web allows *.example.org:443;" },
    { "{\"allow\": [{\"host\": \"x.files.example.org\", \"ports\": [80]}]}",
      "x.files.example.org:80 GET,POST /a/; x.files.example.org:80 GET,POST /b; " },
    { "{\"allow\": [{\"host\": \"*.x.files.example.org\", \"ports\": [80], \"methods\": "
      "[\"GET\"], \"paths\": [\"/a/c\"]}]}",
      "*.x.files.example.org:80 GET /a/c; " },
    { "{\"allow\": [{\"host\": \"x.files.example.org\", \"ports\": [80], \"methods\": "
      "[\"GET\", \"PUT\"]}]}",
      "network: no rule of policy web allows x.files.example.org PUT;" },
    { "{\"allow\": [{\"host\": \"x.files.example.org\", \"ports\": [80], \"paths\": "
      "[\"/bc\"]}]}",
      "network: no rule of policy web allows x.files.example.org:80 /bc;" },
    { "{\"allow\": [{\"host\": \"files.example.org\", \"ports\": [80]}]}",
      "network: no rule of policy web allows files.example.org:80;" },
    { "{\"allow\": [{\"host\": \"db.example.org\", \"ports\": [5432]}]}",
      "db.example.org in 10.1.0.0/16:5432; " },
    { "{\"allow\": [{\"host\": \"db.example.org\", \"network\": \"10.1.2.0/24\", \"ports\": "
      "[5432]}]}",
      "db.example.org in 10.1.2.0/24:5432; " },
    { "{\"allow\": [{\"host\": \"db.example.org\", \"network\": \"10.0.0.0/8\", \"ports\": "
      "[5432]}]}",
      "network: no rule of policy web allows db.example.org in 10.0.0.0/8:5432;" },
    { "{\"allow\": [{\"host\": \"api.example.org\", \"network\": \"10.1.2.0/24\"}]}",
      "network: no rule of policy web allows api.example.org in 10.1.2.0/24:443;" },
    { "{\"allow\": [{\"network\": \"10.2.3.4/32\", \"ports\": [9200]}]}", "10.2.3.4/32:9200; " },
    { "{\"allow\": [{\"network\": \"10.3.3.4/32\", \"ports\": [9200]}]}",
      "network: no rule of policy web allows 10.3.3.4/32:9200;" },
    { "{\"allow\": [\"hub.endpoint\"]}", "hub.endpoint:80 GET,HEAD /repos/; " },
    { "{\"allow\": [{\"host\": \"hub.endpoint\", \"methods\": [\"GET\"], \"paths\": "
      "[\"/repos/x\"]}]}",
      "hub.endpoint:80 GET /repos/x; " },
    { "{\"allow\": [{\"host\": \"hub.endpoint\", \"methods\": [\"POST\"]}]}",
      "network: no rule of policy web allows hub.endpoint:80 POST;" },
    { "{\"allow\": [\"hub.endpoint\"], \"bytes\": \"2MiB\"}",
      "network: bytes 2097152 was asked, policy web allows 1048576;" },
    { "{\"allow\": [\"hub.endpoint\"], \"connections\": 9}",
      "network: connections 9 was asked, policy web allows 8;" },
    { "{\"allow\": [\"hub.endpoint\"], \"connections\": 1, \"received\": \"1KiB\"}",
      "hub.endpoint:80 GET,HEAD /repos/; " },
    { "{\"endpoints\": {\"hub\": {\"url\": \"https://evil.example.org\"}}}",
      "network:1:2: unknown key; keys are allow" },
    { "loopback", "network:1:1: network is none or" },
    { "[]", "network:1:1: network is none or" },
};

TEST(a_request_gets_less_and_never_more)
{
    struct policy_source source = { file, strlen(file), "f", "" };
    static struct policy policy;
    error err;
    require(policy_parse(&source, &policy, &err) == 0, "%s", err.text);
    for_each(fact, facts) {
        const char *left = narrowed(&policy, fact->wish, &err);
        bool is_refused = strncmp(fact->left, "network:", 8) == 0;
        expect(is_refused ? strncmp(left, fact->left, strlen(fact->left)) == 0
                          : strcmp(left, fact->left) == 0,
               "%s gave '%s'", fact->wish, left);
    }
    policy.network = POLICY_NETWORK_NONE;
    expect(strstr(narrowed(&policy, "{\"allow\": [\"api.example.org\"]}", &err), "no rule of"),
           "a policy without a network: %s", err.text);
    expect(narrowed(&policy, "none", &err)[0] == '\0', "none of none");
}

TESTS(CASE(a_request_gets_less_and_never_more))
