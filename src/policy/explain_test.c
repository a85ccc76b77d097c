/* explain_test.c - which line of which file decides what a policy allows. */
#include "policy/explain.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static struct policy policy;
static struct policy_origins origins;

static void begin(const char *name)
{
    char folder[256];
    error err;
    const char *root = getenv("GLOVEBOX_FIXTURES"); /* NOLINT(concurrency-mt-unsafe): one thread */
    require(root, "GLOVEBOX_FIXTURES is not set");
    (void) snprintf(folder, sizeof folder, "%s/policies", root);
    require(policy_load_origins(folder, name, &policy, &origins, &err) == 0, "%s", err.text);
}

struct search {
    const char *key;
    unsigned found;
    char value[64];
    char place[POLICY_ORIGIN_SIZE];
};

static void look(void *context, const struct policy_statement *statement)
{
    struct search *search = context;
    if (strcmp(statement->key, search->key) != 0)
        return;
    search->found++;
    (void) snprintf(search->value, sizeof search->value, "%s", statement->value);
    policy_origin_print(&origins, statement->origin, search->place);
}

static const char *last_part(const char *place)
{
    const char *slash = strrchr(place, '/');
    return slash ? slash + 1 : place;
}

TEST(each_statement_has_the_line_that_says_it)
{
    static const struct {
        const char *policy, *key, *value, *place;
    } facts[] = {
        { "child-ok", "template", "python", "base-ok.yaml:4" },
        { "child-ok", "languages", "python", "child-ok.yaml:4" },
        { "child-ok", "limits.wall", "1 min", "child-ok.yaml:5" },
        { "child-ok", "limits.memory", "256 MiB", "base-ok.yaml:6" },
        { "child-ok", "maximum.memory", "512 MiB", "child-ok.yaml:6" },
        { "base-ok", "network", "none", "base-ok.yaml:9" },
        { "base-ok", "approval", "none", "by itself" },
        { "base-ok", "precheck", "none: code is not looked at", "by itself" },
        { "strict-precheck", "precheck.subprocess", "deny", "strict-precheck.yaml:4" },
        { "strict-precheck", "precheck.modules os", "deny", "strict-precheck.yaml:4" },
        { "asks-first", "approval.when", "always", "asks-first.yaml:4" },
        { "asks-first", "approval.by", "terminal", "by itself" },
    };
    for_each(fact, facts) {
        struct search search = { .key = fact->key };
        begin(fact->policy);
        policy_each_statement(&policy, &origins, look, &search);
        expect(search.found == 1 && strcmp(search.value, fact->value) == 0 &&
                   strcmp(last_part(search.place), fact->place) == 0,
               "%s %s: %u, %s at %s", fact->policy, fact->key, search.found, search.value,
               search.place);
    }
}

TEST(a_finding_is_decided_by_a_line_or_by_the_rule)
{
    static const struct {
        struct policy_finding finding;
        int line;
    } facts[] = {
        { { "subprocess", "deny", "os.system" }, 4 }, /* the module is listed */
        { { "module", "deny", "ctypes" }, 4 },
        { { "subprocess", "deny", "subprocess.run" }, 4 },
        { { "native", "warn", "cffi" }, 0 }, /* the default decision of the rule */
    };
    begin("strict-precheck");
    for_each(fact, facts) {
        struct policy_origin origin = policy_origin_of_finding(&policy, &origins, &fact->finding);
        expect(origin.line == fact->line, "%s: line %d", fact->finding.subject, origin.line);
    }
}

TESTS(CASE(each_statement_has_the_line_that_says_it),
      CASE(a_finding_is_decided_by_a_line_or_by_the_rule))
