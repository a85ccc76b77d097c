/* precheck_test.c - the decision for a finding. */
#include "policy/precheck.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

TEST(a_finding_is_decided_by_list_then_by_rule)
{
    static struct precheck precheck;
    precheck_init(&precheck);
    precheck.rules[CHECK_native] = CHECK_DENY;
    precheck.rules[CHECK_module] = CHECK_ASK;
    (void) precheck_add_module(&precheck, "os", CHECK_DENY);
    (void) precheck_add_module(&precheck, "os.path", CHECK_ALLOW);
    (void) precheck_add_module(&precheck, "ctypes", CHECK_WARN);
    static const struct {
        enum check_rule rule;
        const char *module;
        enum check_decision decision;
    } facts[] = {
        { CHECK_endless, NULL, CHECK_WARN },        { CHECK_syntax, NULL, CHECK_DENY },
        { CHECK_module, "os", CHECK_DENY },         { CHECK_module, "os.path", CHECK_ALLOW },
        { CHECK_module, "os.path.x", CHECK_ALLOW }, { CHECK_module, "os.pathx", CHECK_DENY },
        { CHECK_module, "osx", CHECK_ASK },         { CHECK_module, "", CHECK_ASK },
        { CHECK_native, "ctypes", CHECK_WARN },     { CHECK_native, "cffi", CHECK_DENY },
        { CHECK_native, NULL, CHECK_DENY },         { CHECK_network, "socket", CHECK_ASK },
        { CHECK_network, NULL, CHECK_WARN },
    };
    for_each(fact, facts) {
        enum check_decision decision = precheck_decide(&precheck, fact->rule, fact->module);
        expect(decision == fact->decision, "%s of '%s' is '%s'", check_rows[fact->rule].name,
               fact->module ? fact->module : "-", check_decision_name(decision));
    }
}

TEST(a_policy_is_only_made_stricter)
{
    static struct precheck base, over, merged;
    error err;
    precheck_init(&base);
    base.stated = 1U << CHECK_native;
    base.rules[CHECK_native] = CHECK_DENY;
    merged = base;
    precheck_init(&over);
    (void) precheck_add_module(&over, "ctypes", CHECK_ALLOW);
    expect(precheck_merge(&merged, &over, &err) == 0, "%s", err.text);
    expect(precheck_decide(&merged, CHECK_native, "ctypes") == CHECK_DENY,
           "an allow-list of a child lifts a rule of its parent");
    expect(precheck_decide(&merged, CHECK_module, "ctypes") == CHECK_ALLOW, "it is listed");

    precheck_init(&over);
    over.stated = 1U << CHECK_native;
    over.rules[CHECK_native] = CHECK_ASK;
    expect(precheck_merge(&merged, &over, &err) < 0, "a laxer rule was taken");

    static struct precheck off;
    merged = base;
    expect(precheck_merge(&merged, &off, &err) == 0 && merged.is_on, "a file without the key "
                                                                     "switches nothing off");
}

TEST(words_are_found)
{
    expect(check_rule_find("endless") == CHECK_endless && check_rule_find("") == CHECK_RULES &&
               check_rule_find("Endless") == CHECK_RULES,
           "rules");
    expect(check_decision_find("ask") == CHECK_ASK && check_decision_find("no") == CHECK_DECISIONS,
           "decisions");
}

TESTS(CASE(a_finding_is_decided_by_list_then_by_rule), CASE(a_policy_is_only_made_stricter),
      CASE(words_are_found))
