/* output_findings.c - names of findings in output, and whether anything is expected of it. */
#include "engine/run/run.h"

#include <stdio.h>

static const struct {
    const char *name, *text;
} rules[OUTPUT_CHECK_RULES] = {
#define GATE(name, text) [OUTPUT_CHECK_##name] = { #name, text },
#include "policy/output_rules.def"
};

static const char *const places[PLACES] = {
    [PLACE_STDOUT] = "stdout",     [PLACE_STDERR] = "stderr",       [PLACE_RESULT] = "result",
    [PLACE_ERROR] = "error",       [PLACE_ARTIFACTS] = "artifacts", [PLACE_ARTIFACT] = "artifact",
    [PLACE_EXPECTED] = "expected",
};

static const char *const verdicts[OUTPUT_CHECK_VERDICTS] = { [OUTPUT_CHECK_ERROR] = "error",
                                                             [OUTPUT_CHECK_FAILED] = "failed",
                                                             [OUTPUT_CHECK_PASSED] = "passed" };

const char *output_check_verdict_name(enum output_check_verdict verdict)
{
    return verdicts[verdict];
}

const char *output_check_rule_name(enum output_check_rule rule)
{
    return rules[rule].name;
}

const char *output_check_place_name(enum output_check_place place)
{
    return places[place];
}

const char *output_check_rule_text(enum output_check_rule rule)
{
    return rules[rule].text;
}

void output_check_give_up(struct output_check_outcome *outcome, const char *why)
{
    outcome->verdict = OUTPUT_CHECK_ERROR;
    outcome->count = 0;
    outcome->unlisted = 0;
    (void) snprintf(outcome->failure, sizeof outcome->failure, "%.*s",
                    (int) sizeof outcome->failure - 1, why);
}

bool output_check_is_wanted(const struct policy *policy, const struct run_request *request)
{
    return request->expect || (policy->expect.text[0] && !request->check_only);
}

bool output_check_is_due(const struct run *run)
{
    return run->output_check && !run->output_check->has_begun && !run->evidence.lost &&
           !run->evidence.cancelled;
}
