/* policy_merge.c - merges a policy file over those that it extends: it may only be stricter. */
#include "policy/policy_merge.h"

#include "base/table.h"

#include <stdio.h>
#include <string.h>

int policy_fail_at(const struct policy_link *link, struct place place, error *err, const char *text)
{
    struct yaml yaml = { .label = link->label };
    struct yaml_node node = { .line = place.line, .column = place.column };
    return yaml_fail(&yaml, &node, err, "%s", text);
}

/* Refuses a value above the maximum that an extended policy states. */
static int check_stated(const struct policy_link *link, const struct policy *parent,
                        const struct stated_limits *limits, const char *what, error *err)
{
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t bit = UINT64_C(1) << id;
        uint64_t value = limit_get(&limits->values, id), max = limit_get(&parent->maximum, id);
        if (!(limits->given & bit) || !(parent->stated & bit) || !limit_exceeds(id, value, max))
            continue;
        char asked[32], allowed[32], text[160];
        limit_print(id, value, asked, sizeof asked);
        limit_print(id, max, allowed, sizeof allowed);
        (void) snprintf(text, sizeof text,
                        "%s.%s %s is above the maximum %s of policy %.32s; lower it", what,
                        row->name, asked, allowed, parent->name);
        return policy_fail_at(link, limits->places[id], err, text);
    }
    return 0;
}

/* Merges limits and maxima. A maximum that is stated in this file or in one that it extends is
 * binding. Without one, requests get the value of `limits` and no more, and an extending policy may
 * set any value. */
static int merge_limits(const struct policy_link *link, struct policy *policy, error *err)
{
    const struct policy_file *file = &link->file;
    if (check_stated(link, policy, &file->limits, "limits", err) < 0 ||
        check_stated(link, policy, &file->maximum, "maximum", err) < 0)
        return -1;
    policy->stated |= file->maximum.given;
    for_each(row, limit_rows) {
        enum limit_id id = (enum limit_id)(row - limit_rows);
        uint64_t bit = UINT64_C(1) << id;
        if (file->limits.given & bit)
            limit_put(&policy->limits, id, limit_get(&file->limits.values, id));
        if (file->maximum.given & bit)
            limit_put(&policy->maximum, id, limit_get(&file->maximum.values, id));

        uint64_t value = limit_get(&policy->limits, id);
        if (!(policy->stated & bit)) {
            limit_put(&policy->maximum, id, value);
            continue;
        }
        uint64_t max = limit_get(&policy->maximum, id);
        if (!limit_exceeds(id, value, max))
            continue;
        char start[32], allowed[32], text[160];
        limit_print(id, value, start, sizeof start);
        limit_print(id, max, allowed, sizeof allowed);
        (void) snprintf(text, sizeof text,
                        "maximum.%s %s is below limits.%s %s; raise one or lower the other",
                        row->name, allowed, row->name, start);
        return policy_fail_at(
            link, file->maximum.given & bit ? file->maximum.places[id] : file->limits.places[id],
            err, text);
    }
    return 0;
}

static int merge_variables(const struct policy_link *link, struct policy *policy, error *err)
{
    for (size_t i = 0; i < link->file.variable_count; i++) {
        const struct policy_variable *given = &link->file.variables[i];
        size_t at = 0;
        while (at < policy->variable_count && strcmp(policy->variables[at].name, given->name) != 0)
            at++;
        if (at == POLICY_VARIABLES_MAX)
            return policy_fail_at(link, link->file.name_place, err,
                                  "more than 16 variables with those it extends; remove some");
        policy->variables[at] = *given;
        if (at == policy->variable_count)
            policy->variable_count++;
    }
    return 0;
}

/* A policy cannot exceed the bounds of those that it extends. */
static int merge_sessions(const struct policy_link *link, struct policy *policy, error *err)
{
    const struct policy_sessions *said = &link->file.sessions;
    for (unsigned i = 0; i < SESSIONS_BOUNDS; i++) {
        uint64_t bit = UINT64_C(1) << i;
        if (!(said->given & bit))
            continue;
        if ((policy->sessions.given & bit) && said->values[i] > policy->sessions.values[i])
            return policy_fail_at(
                link, link->file.sessions_place, err,
                "sessions allows more than the policy that this one extends; lower it");
        policy->sessions.values[i] = said->values[i];
        policy->sessions.given |= bit;
    }
    return 0;
}

static int merge_precheck(const struct policy_link *link, struct policy *policy, error *err)
{
    error cause;
    if (precheck_merge(&policy->precheck, &link->file.precheck, &cause) == 0)
        return 0;
    return policy_fail_at(link, link->file.precheck_place, err, cause.text);
}

static int merge_expect(const struct policy_link *link, struct policy *policy, error *err)
{
    error cause;
    if (expect_merge(&policy->expect, &link->file.expect, &cause) == 0)
        return 0;
    return policy_fail_at(link, link->file.expect_place, err, cause.text);
}

/* A policy that extends another needs approval in at least as many cases, and its approvals cover
 * no more. Defaults of the extended policy bind like stated values. */
static void merge_approval(const struct policy_approval *said, struct policy_approval *approval)
{
    bool binds = approval->when != 0;
    if (said->scopes)
        approval->scopes =
            REACH_ONCE | (binds ? approval_scopes(approval) & said->scopes : said->scopes);
    if (said->expires_ms && (!binds || said->expires_ms < approval_expires_ms(approval)))
        approval->expires_ms = said->expires_ms;
    approval->when |= said->when;
    approval->is_out_of_band |= said->is_out_of_band;
}

/* True if the description of the extended policy may be wrong for this one, which has another
 * network, template or languages. */
static bool needs_own_description(const struct policy_file *file, const struct policy *policy)
{
    bool has_network = file->network != POLICY_NETWORK_UNSAID &&
                       (file->network == POLICY_NETWORK_RULES || file->network != policy->network);
    bool has_template = file->template[0] && strcmp(file->template, policy->template) != 0;
    bool has_languages =
        file->language_count > 0 &&
        (file->language_count != policy->language_count ||
         memcmp(file->languages, policy->languages, sizeof policy->languages) != 0);
    return has_network || has_template || has_languages;
}

int policy_merge(const struct policy_link *link, struct policy *policy, error *err)
{
    const struct policy_file *file = &link->file;
    if (merge_limits(link, policy, err) < 0 || merge_variables(link, policy, err) < 0 ||
        merge_sessions(link, policy, err) < 0 || merge_precheck(link, policy, err) < 0 ||
        merge_expect(link, policy, err) < 0)
        return -1;
    merge_approval(&file->approval, &policy->approval);
    memcpy(policy->name, file->name, sizeof policy->name);
    memcpy(policy->extends, file->extends, sizeof policy->extends);
    if (file->description[0] || needs_own_description(file, policy))
        memcpy(policy->description, file->description, sizeof policy->description);
    if (file->template[0])
        memcpy(policy->template, file->template, sizeof policy->template);
    if (file->network != POLICY_NETWORK_UNSAID) {
        policy->network = file->network;
        policy->route = file->route;
    }
    if (file->language_count > 0) {
        policy->language_count = file->language_count;
        memcpy(policy->languages, file->languages, sizeof policy->languages);
    }
    return 0;
}
