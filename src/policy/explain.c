/* explain.c - see explain.h. */
#include "policy/explain.h"

#include "base/table.h"
#include "base/text.h"
#include "json/member.h"

#include <stdio.h>

struct explainer {
    const struct policy *policy;
    const struct policy_origins *origins;
    void (*each)(void *context, const struct policy_statement *statement);
    void *context;
};

static void explain_one(const struct explainer *explainer, const char *key, const char *value,
                        struct policy_origin origin)
{
    const struct policy_statement statement = { key, value, origin };
    explainer->each(explainer->context, &statement);
}

static void explain_limits(const struct explainer *explainer)
{
    const struct policy *policy = explainer->policy;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t values[] = { limit_get(&policy->limits, id), limit_get(&policy->maximum, id) };
        char texts[2][32];
        char key[48];
        for (int i = 0; i < 2; i++)
            if (limit_may_be_off(id) && values[i] == 0)
                (void) snprintf(texts[i], sizeof texts[i], "not limited");
            else
                limit_print(id, values[i], texts[i], sizeof texts[i]);
        (void) snprintf(key, sizeof key, "limits.%s", row->name);
        explain_one(explainer, key, texts[0], explainer->origins->limits[id]);
        if (!(policy->stated & (UINT64_C(1) << id)) || values[0] == values[1])
            continue;
        (void) snprintf(key, sizeof key, "maximum.%s", row->name);
        explain_one(explainer, key, texts[1], explainer->origins->maximum[id]);
    }
}

static void explain_network(const struct explainer *explainer)
{
    const struct policy *policy = explainer->policy;
    struct policy_origin origin = explainer->origins->keys[POLICY_KEY_NETWORK];
    if (policy->network != POLICY_NETWORK_RULES) {
        explain_one(explainer, "network",
                    policy->network == POLICY_NETWORK_LOOPBACK ? "loopback" : "none", origin);
        return;
    }
    for (unsigned i = 0; i < policy->route.count; i++) {
        char text[NETWORK_RULE_TEXT];
        network_rule_write(&policy->route.rules[i], text);
        explain_one(explainer, "network.allow", text, origin);
    }
}

static void explain_precheck(const struct explainer *explainer)
{
    const struct policy_origins *origins = explainer->origins;
    const struct precheck *precheck = &explainer->policy->precheck;
    char key[96];
    if (!precheck->is_on) {
        explain_one(explainer, "precheck", "none: code is not looked at",
                    (struct policy_origin){ 0 });
        return;
    }
    for (unsigned rule = 0; rule < CHECK_RULES; rule++) {
        (void) snprintf(key, sizeof key, "precheck.%s",
                        rule == CHECK_module ? "modules.others" : check_rows[rule].name);
        explain_one(explainer, key,
                    check_decision_name((enum check_decision) precheck->rules[rule]),
                    origins->rules[rule]);
    }
    for (size_t i = 0; i < precheck->module_count; i++) {
        (void) snprintf(key, sizeof key, "precheck.modules %s", precheck->modules[i].name);
        explain_one(explainer, key,
                    check_decision_name((enum check_decision) precheck->modules[i].decision),
                    origins->modules[i]);
    }
}

static void explain_approval(const struct explainer *explainer)
{
    const struct policy_approval *approval = &explainer->policy->approval;
    const struct policy_origin *origins = explainer->origins->approval;
    char text[64];
    if (approval->when == 0) {
        explain_one(explainer, "approval", "none", (struct policy_origin){ 0 });
        return;
    }
    for (unsigned bit = 0; bit < APPROVAL_BY; bit++)
        if (approval->when & (1U << bit))
            explain_one(explainer, "approval.when", approval_asks_name(1U << bit),
                        origins[APPROVAL_WHEN + bit]);
    explain_one(explainer, "approval.by", approval->is_out_of_band ? "out_of_band" : "terminal",
                origins[APPROVAL_BY]);
    approval_print_scopes(approval_scopes(approval), text, sizeof text);
    explain_one(explainer, "approval.scopes", text, origins[APPROVAL_SCOPES]);
    limit_print(LIMIT_wall, approval_expires_ms(approval), text, sizeof text);
    explain_one(explainer, "approval.expires", text, origins[APPROVAL_EXPIRES]);
}

/* Explains each key of each expectation, as JSON, with the line of its file. */
static void explain_expect(const struct explainer *explainer)
{
    const struct policy_expect *expect = &explainer->policy->expect;
    const struct policy_origins *origins = explainer->origins;
    auto_json list = expect->text[0] ? json_tokener_parse(expect->text) : NULL;
    for (size_t i = 0; list && i < json_object_array_length(list); i++) {
        json_object_object_foreach(json_object_array_get_idx(list, i), name, value)
        {
            char key[48];
            (void) snprintf(key, sizeof key, "expect.%.32s", name);
            explain_one(explainer, key,
                        json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE),
                        origins->expects[i]);
        }
    }
    if (!list)
        explain_one(explainer, "expect", "what a request expects", (struct policy_origin){ 0 });
    if (list || expect->on_fault != ON_FAULT_UNSAID)
        explain_one(explainer, "expect.on_fault", policy_on_fault_name(expect->on_fault),
                    origins->on_fault);
}

static void list_languages(const struct policy *policy, char *text, size_t size)
{
    text[0] = '\0';
    for (size_t i = 0; i < policy->language_count; i++)
        (void) text_list(text, size, policy->languages[i]);
}

void policy_each_statement(const struct policy *policy, const struct policy_origins *origins,
                           void (*each)(void *context, const struct policy_statement *statement),
                           void *context)
{
    const struct explainer explainer = { policy, origins, each, context };
    char languages[POLICY_LANGUAGES_MAX * POLICY_LANGUAGE_SIZE + 8];
    list_languages(policy, languages, sizeof languages);
    explain_one(&explainer, "template", policy->template, origins->keys[POLICY_KEY_TEMPLATE]);
    explain_one(&explainer, "languages", languages, origins->keys[POLICY_KEY_LANGUAGES]);
    explain_network(&explainer);
    explain_limits(&explainer);
    explain_precheck(&explainer);
    explain_approval(&explainer);
    explain_expect(&explainer);
}

struct policy_origin policy_origin_of_finding(const struct policy *policy,
                                              const struct policy_origins *origins,
                                              const struct policy_finding *finding)
{
    const struct precheck *precheck = &policy->precheck;
    enum check_rule rule = check_rule_find(finding->rule);
    enum check_decision decision = check_decision_find(finding->decision);
    const struct precheck_module *listed = precheck_module(precheck, finding->subject);
    if (listed && listed->decision == decision)
        return origins->modules[listed - precheck->modules];
    if (rule < CHECK_RULES && precheck->rules[rule] == decision)
        return origins->rules[rule];
    return origins->rules[CHECK_module];
}

void policy_origin_print(const struct policy_origins *origins, struct policy_origin origin,
                         char ret_text[POLICY_ORIGIN_SIZE])
{
    if (origin.line == 0)
        (void) snprintf(ret_text, POLICY_ORIGIN_SIZE, "by itself");
    else
        (void) snprintf(ret_text, POLICY_ORIGIN_SIZE, "%s:%d", origins->files[origin.file],
                        origin.line);
}
