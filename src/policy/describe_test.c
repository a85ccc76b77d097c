/* describe_test.c - the description of the sandbox for a model. */
#include "policy/describe.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static struct policy policy;

static void begin(void)
{
    memset(&policy, 0, sizeof policy);
    (void) snprintf(policy.name, sizeof policy.name, "mine");
    (void) snprintf(policy.languages[0], sizeof policy.languages[0], "python");
    (void) snprintf(policy.languages[1], sizeof policy.languages[1], "bash");
    policy.language_count = 2;
    policy.network = POLICY_NETWORK_NONE;
    limits_init(&policy.limits);
    limits_init(&policy.maximum);
    precheck_init(&policy.precheck);
    policy.precheck.is_on = false;
}

static void expect_says(const char *manifest, const char *said, bool is_said)
{
    auto_bytes out = { 0 };
    struct json_object *json = json_tokener_parse(manifest);
    require(json, "%s", manifest);
    policy_describe(&policy, json, &out);
    const char *found = strstr(bytes_text(&out), said);
    expect(!found == !is_said, "'%s' is %s in: %s", said, is_said ? "not" : "", bytes_text(&out));
    (void) json_object_put(json);
}

TEST(it_names_policy_languages_and_packages)
{
    static const char manifest[] =
        "{\"description\":\"numbers\",\"python\":[{\"name\":\"numpy\",\"version\":\"2.1\"},"
        "{\"name\":\"own\",\"version\":\"0.0.0\"}]}";
    begin();
    expect_says(manifest, "(glovebox, policy mine)", true);
    expect_says(manifest, "Languages: python, bash.\n", true);
    expect_says(manifest, "Installed: numbers\n", true);
    expect_says(manifest, "Python packages: numpy 2.1, own. Nothing else can be installed.\n",
                true);
    expect_says("{}", "Python packages", false);
}

TEST(it_names_the_versions_of_languages)
{
    static const char manifest[] =
        "{\"packages\":[{\"name\":\"bash\",\"version\":\"5.2.15-2\"},"
        "{\"name\":\"python3\",\"version\":\"3.11.2-1+b1\"},{\"name\":\"g++\","
        "\"version\":\"4:12.2.0-3\"},{\"name\":\"gcc\"},{}]}";
    begin();
    (void) snprintf(policy.languages[2], sizeof policy.languages[2], "cpp");
    (void) snprintf(policy.languages[3], sizeof policy.languages[3], "c");
    policy.language_count = 4;
    expect_says(manifest,
                "Languages: python, bash, cpp, c.\nVersions: python 3.11.2, cpp 12.2.0.\n", true);
}

TEST(a_pending_approval_is_printed)
{
    begin();
    expect_says("{}", "A person is asked", false);
    policy.approval = (struct policy_approval){ .when = ASKS_ALWAYS };
    expect_says("{}", "A person is asked before your code runs: always.\n", true);
    expect_says("{}", "Within 15 min", true);
    expect_says("{}", "send the very same request again", true);
    policy.approval =
        (struct policy_approval){ .when = ASKS_NETWORK | ASKS_WARNING, .expires_ms = 3600000 };
    expect_says("{}", "runs: if the network can be reached, if the look at your code notes", true);
    expect_says("{}", "Within 60 min", true);
    policy.approval = (struct policy_approval){ 0 };
    policy.precheck.is_on = true;
    policy.precheck.rules[CHECK_network] = CHECK_ASK;
    expect_says("{}", "runs: if it does what is said above.\n", true);
    policy.precheck.rules[CHECK_network] = CHECK_WARN;
    expect_says("{}", "A person is asked", false);
}

TEST(it_names_endpoints_as_code_writes_them)
{
    begin();
    policy.network = POLICY_NETWORK_RULES;
    policy.route.endpoint_count = 1;
    (void) snprintf(policy.route.endpoints[0].name, sizeof policy.route.endpoints[0].name,
                    "models");
    expect_says("{}", "- http://models.endpoint/ leads to", true);
    policy.route.endpoint_count = 0;
    expect_says("{}", ".endpoint/", false);
}

TEST(more_packages_than_it_names_are_mentioned)
{
    auto_bytes manifest = { 0 };
    begin();
    bytes_add_text(&manifest, "{\"python\":[{\"name\":\"first\"}");
    for (int i = 0; i < 119; i++)
        bytes_add_text(&manifest, ",{\"name\":\"p\"}");
    bytes_add_text(&manifest, "]}");
    expect_says(bytes_text(&manifest), "and more.", false);
    manifest.size -= 2;
    bytes_add_text(&manifest, ",{\"name\":\"last\"}]}");
    expect_says(bytes_text(&manifest), ", p and more.", true);
    expect_says(bytes_text(&manifest), "last", false);
}

TEST(limits_say_what_more_may_be_asked_for)
{
    begin();
    policy.limits.wall = policy.maximum.wall = 10000;
    expect_says("{}", "- wall: 10 s (", true);
    expect_says("{}", "up to 1 min may be asked for", false);
    policy.maximum.wall = 60000;
    expect_says("{}", "up to 1 min may be asked for", true);
}

TEST(checks_and_expectations_are_reported_where_there_are_some)
{
    begin();
    expect_says("{}", "looked at before it runs", false);
    expect_says("{}", "What you leave is compared", false);
    policy.precheck.is_on = true;
    policy.precheck.rules[CHECK_subprocess] = CHECK_DENY;
    (void) precheck_add_module(&policy.precheck, "os", CHECK_ASK);
    expect_says("{}", "- It is refused if it: ", true);
    expect_says("{}", "imports os.", true);
    (void) snprintf(policy.expect.text, sizeof policy.expect.text, "[{\"stdout\":{}}]");
    expect_says("{}", "all of it has to be so: [{\"stdout\":{}}]", true);
    expect_says("{}", "are withheld", false);
    policy.expect.on_fault = ON_FAULT_WITHHOLD;
    expect_says("{}", "are withheld", true);
}

TESTS(CASE(a_pending_approval_is_printed), CASE(it_names_endpoints_as_code_writes_them),
      CASE(it_names_policy_languages_and_packages), CASE(it_names_the_versions_of_languages),
      CASE(more_packages_than_it_names_are_mentioned), CASE(limits_say_what_more_may_be_asked_for),
      CASE(checks_and_expectations_are_reported_where_there_are_some))
