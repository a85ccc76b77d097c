/* check_findings.c - findings in the code of a run, for results and as denials. */
#include "engine/run/run.h"

#include "json/writer.h"

#include <stdio.h>

bool check_is_wanted(const struct run *run)
{
    return run->check_only || run->plan.policy->precheck.is_on;
}

enum check_decision check_decision_of(const struct run *run)
{
    return run->checks ? run->checks->decision : CHECK_DENY;
}

/* A line such as "line 3 starts other programs: os.system". */
static void check_finding_write(const struct check_finding *finding, char *text, size_t size)
{
    char place[40] = "the code";
    if (finding->line > 0)
        (void) snprintf(place, sizeof place, "line %u", finding->line);
    (void) snprintf(text, size, "%s %s%s%s", place, check_rows[finding->rule].text,
                    finding->subject[0] ? ": " : "", finding->subject);
}

static void write_finding(const struct check_finding *finding, struct bytes *out)
{
    char message[DENIAL_MESSAGE_SIZE];
    check_finding_write(finding, message, sizeof message);
    json_open(out, '{');
    json_string_field(out, "rule", check_rows[finding->rule].name);
    json_string_field(out, "decision", check_decision_name(finding->decision));
    json_count_field(out, "line", finding->line);
    json_count_field(out, "column", finding->column);
    json_string_field(out, "subject", finding->subject);
    json_string_field(out, "message", message);
    json_close(out, '}');
}

void check_write(const struct check_outcome *outcome, struct bytes *out)
{
    if (!outcome) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_string_field(out, "decision", check_decision_name(outcome->decision));
    json_open_field(out, "findings", '[');
    for (size_t i = 0; i < outcome->count; i++)
        write_finding(&outcome->findings[i], out);
    json_close(out, ']');
    json_count_field(out, "unlisted", outcome->unlisted);
    json_string_field(out, "failure", outcome->failure[0] ? outcome->failure : NULL);
    json_number_field(out, "took_ms", outcome->took_ms);
    json_close(out, '}');
}

static const char *words_of(enum check_decision decision)
{
    return decision == CHECK_ASK ? "needs a person's approval, and none was requested"
                                 : "does not let it run";
}

static void tell_findings(const struct check_outcome *outcome, const char *policy,
                          enum check_decision decision, struct denials *denials)
{
    char target[DENIAL_TARGET_SIZE];
    char message[DENIAL_MESSAGE_SIZE];
    for (size_t i = 0; outcome && i < outcome->count; i++) {
        const struct check_finding *finding = &outcome->findings[i];
        const struct check_row *row = &check_rows[finding->rule];
        const char *subject = finding->subject[0] ? finding->subject : row->name;
        if (finding->decision != decision)
            continue;
        if (finding->line > 0)
            (void) snprintf(target, sizeof target, "line %u, %s", finding->line, subject);
        else
            (void) snprintf(target, sizeof target, "%s", subject);
        (void) snprintf(message, sizeof message, "%s; policy %.40s %s; nothing has run", row->text,
                        policy, words_of(decision));
        denials_add(denials, decision == CHECK_ASK ? DENIAL_ASK : DENIAL_DENY, target, message, 1);
    }
}

/* The strictest finding comes first, since some clients show one line only. If one finding denies
 * the run, no approval is requested for the others: they are refused too, and say so. */
void check_refuse(const struct run *run, struct denials *denials)
{
    const struct check_outcome *outcome = run->checks;
    const char *policy = run->plan.policy->name;
    char message[DENIAL_MESSAGE_SIZE];
    if (!outcome || outcome->failure[0]) {
        (void) snprintf(message, sizeof message,
                        "%.100s; policy %.63s lets nothing run unchecked; nothing has run",
                        outcome ? outcome->failure : "memory ran out", policy);
        denials_add(denials, DENIAL_UNCHECKED, "the checker", message, 1);
    }
    tell_findings(outcome, policy, CHECK_DENY, denials);
    tell_findings(outcome, policy, CHECK_ASK, denials);
}
