/* precheck.c - checks code before it runs: chooses a checker, runs it, reads its answer. */
#include "engine/review/precheck.h"

#include "base/table.h"
#include "check_bash.h"
#include "check_javascript.h"
#include "check_magics.h"
#include "check_names.h"
#include "check_python.h"
#include "check_report.h"
#include "engine/review/helper_run.h"
#include "engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 1024 * 1024 };

static const char input_name[] = "checked"; /* no module has such a name, without a suffix */

/* The checker for a language. It runs as `runs_as`, in the template of the code. */
static const struct checker {
    const char *language, *runs_as;
    const char *const *parts; /* NULL-ended: the program's text */
} checkers[] = {
    { "python", "python",
      (const char *const[]){ check_report, check_names, check_magics, check_python, NULL } },
    { "bash", "python", (const char *const[]){ check_report, check_bash, NULL } },
    { "node", "node", (const char *const[]){ check_javascript, NULL } },
    { "javascript", "javascript", (const char *const[]){ check_javascript, NULL } },
};

/* Limits for checkers, whatever the policy of the code is. */
static const struct policy *policy_of_checkers(void)
{
    static struct policy policy;
    if (policy.name[0])
        return &policy;
    helper_run_policy_init(&policy, "precheck");
    for_each(checker, checkers)
        (void) snprintf(policy.languages[policy.language_count++], POLICY_LANGUAGE_SIZE, "%s",
                        checker->runs_as);
    return &policy;
}

static void add_finding(struct check_outcome *outcome, const struct check_finding *finding)
{
    if (finding->decision > outcome->decision)
        outcome->decision = finding->decision;
    if (finding->decision == CHECK_ALLOW)
        return;
    if (outcome->count < CHECK_FINDINGS_MAX) {
        outcome->findings[outcome->count++] = *finding;
        return;
    }
    outcome->unlisted++;
    for (size_t i = 0; i < outcome->count; i++) /* the strictest finding is always listed */
        if (outcome->findings[i].decision < finding->decision) {
            outcome->findings[i] = *finding;
            return;
        }
}

/* If the policy has no rules, a request for findings only uses the default rules. */
static const struct precheck *rules_of(const struct run *run)
{
    static struct precheck usual;
    if (run->plan.policy->precheck.is_on)
        return &run->plan.policy->precheck;
    if (!usual.is_on)
        precheck_init(&usual);
    return &usual;
}

static void add_unchecked(struct run *run, const char *why)
{
    struct check_finding finding = { .rule = CHECK_unchecked };
    finding.decision = precheck_decide(rules_of(run), finding.rule, NULL);
    (void) snprintf(finding.subject, sizeof finding.subject, "%s", why);
    add_finding(run->checks, &finding);
}

/* Without an answer the run is denied. */
static void fail_check(struct check_outcome *outcome, const char *why)
{
    outcome->decision = CHECK_DENY;
    (void) snprintf(outcome->failure, sizeof outcome->failure, "%.*s",
                    (int) sizeof outcome->failure - 1, why);
}

static bool read_number(char **at, uint32_t *ret_number)
{
    char *end;
    unsigned long number = strtoul(*at, &end, 10);
    if (**at < '0' || **at > '9' || *end != ' ' || number > UINT32_MAX)
        return false;
    *ret_number = (uint32_t) number;
    *at = end + 1;
    return true;
}

/* "RULE LINE COLUMN import|use SUBJECT" */
static bool read_finding(char *line, const struct precheck *precheck, struct check_finding *finding)
{
    char *at = strchr(line, ' ');
    if (!at)
        return false;
    *at++ = '\0';
    *finding = (struct check_finding){ .rule = check_rule_find(line) };
    if (finding->rule == CHECK_RULES || !read_number(&at, &finding->line) ||
        !read_number(&at, &finding->column))
        return false;
    finding->is_import = strncmp(at, "import ", 7) == 0;
    if (!finding->is_import && strncmp(at, "use ", 4) != 0)
        return false;
    at += finding->is_import ? 7 : 4;
    size_t length = strlen(at);
    if (length >= sizeof finding->subject)
        return false;
    for (size_t i = 0; i < length; i++)
        if (at[i] < ' ' || at[i] > '~')
            return false;
    memcpy(finding->subject, at, length + 1);
    finding->decision =
        precheck_decide(precheck, finding->rule, finding->is_import ? finding->subject : NULL);
    return true;
}

/* Lines of findings, then "end COUNT", and nothing else. */
bool check_read_answer(char *text, const struct precheck *precheck, struct check_outcome *outcome)
{
    unsigned long count = 0;
    for (char *line = text, *next; *line; line = next) {
        struct check_finding finding;
        char *end = strchr(line, '\n');
        if (!end)
            return false;
        *end = '\0';
        next = end + 1;
        if (strncmp(line, "end ", 4) == 0) {
            char *behind;
            unsigned long all = strtoul(line + 4, &behind, 10);
            return *behind == '\0' && *next == '\0' && all == count;
        }
        if (!read_finding(line, precheck, &finding))
            return false;
        add_finding(outcome, &finding);
        count++;
    }
    return false;
}

static void on_answer(struct run *run, const struct helper_run_answer *answer)
{
    void (*told)(struct run * run) = run->check_told;
    run->check = NULL;
    run->checks->took_ms = answer->took_ms;
    run->checks_cpu_us += answer->cpu_us;
    if (answer->failure)
        fail_check(run->checks, answer->failure);
    else if (!check_read_answer(answer->text, rules_of(run), run->checks))
        fail_check(run->checks, "the checker printed something other than up to 1000 findings");
    told(run);
}

void check_abandon(struct run *run)
{
    helper_run_abandon(run->check);
    run->check = NULL;
}

static const struct checker *find_checker(const struct run *run)
{
    if (!run->plan.language)
        return NULL;
    for_each(checker, checkers)
        if (strcmp(checker->language, run->plan.language->name) == 0 &&
            template_language(run->plan.template, checker->runs_as))
            return checker;
    return NULL;
}

/* The text is part of the request of the run that waits. */
static int begin_checker(struct run *run, const struct checker *checker, const struct payload *code,
                         bool is_cell, error *err)
{
    const struct run_spec place = { .policy = policy_of_checkers(),
                                    .template = run->plan.template };
    const struct request_file file = {
        .path = input_name, .content = *code, .has_content = true, .read_only = true
    };
    const struct helper_run_order order = { .place = &place,
                                            .runs_as = checker->runs_as,
                                            .parts = checker->parts,
                                            .files = &file,
                                            .file_count = 1,
                                            .arguments = { input_name,
                                                           is_cell ? "cell" : "script" },
                                            .told = on_answer };
    return helper_run_begin(run, &order, &run->check, err);
}

void check_begin(struct run *run, const struct run_request *given, bool is_cell,
                 void (*told)(struct run *run))
{
    const struct checker *checker = find_checker(run);
    char why[CHECK_SUBJECT_SIZE];
    error err;
    run->checks = calloc(1, sizeof *run->checks);
    if (!run->checks) {
        told(run);
        return;
    }
    run->check_told = told;
    if (!run->plan.language) {
        add_unchecked(run, "a command");
    } else if (!checker) {
        (void) snprintf(why, sizeof why, "there is no checker for %.40s", run->plan.language->name);
        add_unchecked(run, why);
    } else if (given->code.size > CODE_MAX) {
        add_unchecked(run, "it is longer than 1 MiB");
    } else if (begin_checker(run, checker, &given->code, is_cell, &err) == 0) {
        return; /* on_answer() follows */
    } else {
        fail_check(run->checks, err.text);
    }
    told(run);
}
