/* policy_permits_test.c - what policies allow, and what needs approval. */
#include "policy/policy_permits.h"

#include "base/table.h"
#include "base/test.h"

#include <string.h>

static struct policy policy;

static void begin(void)
{
    memset(&policy, 0, sizeof policy);
    (void) snprintf(policy.name, sizeof policy.name, "mine");
    limits_init(&policy.limits);
    precheck_init(&policy.precheck);
    policy.precheck.is_on = false;
}

TEST(outputs_leave_uncompared_unless_the_policy_withholds)
{
    static const struct {
        enum policy_on_fault on_fault;
        const char *text;
        bool withholds;
    } facts[] = {
        { ON_FAULT_UNSAID, "", false },
        { ON_FAULT_UNSAID, "[{}]", false },
        { ON_FAULT_TELL, "[{}]", false },
        { ON_FAULT_WITHHOLD, "", false }, /* nothing is expected */
        { ON_FAULT_WITHHOLD, "[{}]", true },
    };
    error err;
    for_each(fact, facts) {
        begin();
        policy.expect.on_fault = fact->on_fault;
        (void) snprintf(policy.expect.text, sizeof policy.expect.text, "%s", fact->text);
        int expected = fact->withholds ? -1 : 0;
        expect(policy_withholds(&policy) == fact->withholds, "%u %s", fact->on_fault, fact->text);
        expect(policy_permits_uncompared(&policy, "files", &err) == expected, "files");
        expect(policy_permits_programs(&policy, &err) == expected, "programs");
        expect(expected == 0 || err.code == ERR_POLICY, "%s", err.text);
    }
}

TEST(no_program_starts_where_code_has_to_be_checked)
{
    static const struct {
        bool is_on;
        enum check_decision decision;
        int result;
    } facts[] = { { false, CHECK_DENY, 0 },
                  { true, CHECK_ALLOW, 0 },
                  { true, CHECK_WARN, 0 },
                  { true, CHECK_ASK, -1 },
                  { true, CHECK_DENY, -1 } };
    error err;
    for_each(fact, facts) {
        begin();
        policy.precheck.is_on = fact->is_on;
        policy.precheck.rules[CHECK_unchecked] = (unsigned char) fact->decision;
        expect(policy_permits_programs(&policy, &err) == fact->result, "%u: %s", fact->decision,
               err.text);
    }
}

TEST(a_session_leaves_no_artifacts_to_compare)
{
    error err;
    begin();
    expect(policy_permits_session(&policy, &err) == 0, "nothing is expected");
    policy.expect.needs.artifacts = true;
    expect(policy_permits_session(&policy, &err) < 0 && err.code == ERR_BAD_REQUEST, "artifacts");
}

TEST(a_person_is_asked_about_what_the_policy_names)
{
    static const struct {
        uint32_t when, found;
        enum policy_network network;
        bool exceeds;
        uint32_t reasons;
    } facts[] = {
        { 0, 0, POLICY_NETWORK_RULES, true, 0 },
        { 0, ASKS_WARNING, POLICY_NETWORK_NONE, false, 0 },
        { 0, ASKS_CHECK, POLICY_NETWORK_NONE, false, ASKS_CHECK }, /* for any policy */
        { ASKS_ALWAYS, 0, POLICY_NETWORK_NONE, false, ASKS_ALWAYS },
        { ASKS_NETWORK, 0, POLICY_NETWORK_NONE, true, 0 },
        { ASKS_NETWORK, 0, POLICY_NETWORK_LOOPBACK, false, 0 }, /* no network */
        { ASKS_NETWORK, 0, POLICY_NETWORK_RULES, false, ASKS_NETWORK },
        { ASKS_OVER_LIMITS, 0, POLICY_NETWORK_RULES, false, 0 },
        { ASKS_OVER_LIMITS, 0, POLICY_NETWORK_NONE, true, ASKS_OVER_LIMITS },
        { ASKS_WARNING, ASKS_WARNING, POLICY_NETWORK_NONE, false, ASKS_WARNING },
        { ASKS_WARNING, 0, POLICY_NETWORK_RULES, true, 0 },
    };
    for_each(fact, facts) {
        begin();
        policy.approval.when = fact->when;
        struct limits granted = policy.limits;
        granted.wall += fact->exceeds;
        uint32_t reasons = policy_asks_about(&policy, &granted, fact->network, fact->found);
        expect(reasons == fact->reasons, "when %u, found %u: %u, not %u", fact->when, fact->found,
               reasons, fact->reasons);
    }
}

TESTS(CASE(outputs_leave_uncompared_unless_the_policy_withholds),
      CASE(no_program_starts_where_code_has_to_be_checked),
      CASE(a_session_leaves_no_artifacts_to_compare),
      CASE(a_person_is_asked_about_what_the_policy_names))
