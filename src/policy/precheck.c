/* precheck.c - the rules of precheck_rules.def, and decisions about findings. */
#include "policy/precheck.h"

#include <stdlib.h>
#include <string.h>

const struct check_row check_rows[CHECK_RULES] = {
#define CHECK(name, decision, text) [CHECK_##name] = { #name, CHECK_##decision, text },
#include "policy/precheck_rules.def"
};

static const char *const decision_names[CHECK_DECISIONS] = { "allow", "warn", "ask", "deny" };

const char *check_decision_name(enum check_decision decision)
{
    return decision < CHECK_DECISIONS ? decision_names[decision] : NULL;
}

enum check_decision check_decision_find(const char *word)
{
    unsigned i = 0;
    while (i < CHECK_DECISIONS && strcmp(decision_names[i], word) != 0)
        i++;
    return (enum check_decision) i;
}

enum check_rule check_rule_find(const char *word)
{
    unsigned i = 0;
    while (i < CHECK_RULES && strcmp(check_rows[i].name, word) != 0)
        i++;
    return (enum check_rule) i;
}

void precheck_init(struct precheck *precheck)
{
    *precheck = (struct precheck){ .is_on = true };
    for (unsigned i = 0; i < CHECK_RULES; i++)
        precheck->rules[i] = (unsigned char) check_rows[i].start;
}

static int by_name(const void *left, const void *right)
{
    return strcmp(left, right); /* the first member of a module is its name */
}

static struct precheck_module *find(struct precheck *precheck, const char *name)
{
    for (size_t i = 0; i < precheck->module_count; i++)
        if (strcmp(precheck->modules[i].name, name) == 0)
            return &precheck->modules[i];
    return NULL;
}

int precheck_add_module(struct precheck *precheck, const char *name, enum check_decision decision)
{
    if (precheck->module_count == PRECHECK_MODULES_MAX || strlen(name) >= PRECHECK_MODULE_SIZE ||
        find(precheck, name))
        return -1;
    struct precheck_module *module = &precheck->modules[precheck->module_count++];
    memcpy(module->name, name, strlen(name) + 1);
    module->decision = (unsigned char) decision;
    qsort(precheck->modules, precheck->module_count, sizeof *module, by_name);
    return 0;
}

/* Finds the longest listed name that contains it: "os.path" before "os" for "os.path.join". */
const struct precheck_module *precheck_module(const struct precheck *precheck, const char *name)
{
    const struct precheck_module *nearest = NULL;
    size_t longest = 0;
    for (size_t i = 0; i < precheck->module_count; i++) {
        const struct precheck_module *module = &precheck->modules[i];
        size_t length = strlen(module->name);
        bool lies_in = strncmp(name, module->name, length) == 0 &&
                       (name[length] == '\0' || name[length] == '.');
        if (!lies_in || length < longest)
            continue;
        nearest = module;
        longest = length;
    }
    return nearest;
}

enum check_decision precheck_decide(const struct precheck *precheck, enum check_rule rule,
                                    const char *module)
{
    const struct precheck_module *listed = module ? precheck_module(precheck, module) : NULL;
    unsigned char decision = precheck->rules[rule];
    if (listed && (!(listed->bound & (1U << rule)) || decision < listed->decision))
        decision = listed->decision;
    else if (module && !listed && decision < precheck->rules[CHECK_module])
        decision = precheck->rules[CHECK_module]; /* not listed: modules.others */
    return (enum check_decision) decision;
}

static int fail_laxer(const char *what, const char *name, enum check_decision asked,
                      enum check_decision min, error *err)
{
    return fail(err, ERR_BAD_REQUEST,
                "precheck.%s%s is '%s', and the policy that this one extends says '%s'; a policy "
                "may only be stricter",
                what, name, check_decision_name(asked), check_decision_name(min));
}

static int merge_module(struct precheck *precheck, const struct precheck_module *over, error *err)
{
    const struct precheck_module *said = precheck_module(precheck, over->name);
    if (said && over->decision < said->decision)
        return fail_laxer("modules.", over->name, (enum check_decision) over->decision,
                          (enum check_decision) said->decision, err);
    bool binds = precheck->stated & (1U << CHECK_module);
    if (!said && binds && over->decision < precheck->rules[CHECK_module])
        return fail_laxer("modules.", over->name, (enum check_decision) over->decision,
                          (enum check_decision) precheck->rules[CHECK_module], err);
    struct precheck_module *same = find(precheck, over->name);
    uint32_t bound = same ? same->bound : precheck->stated;
    if (same)
        same->decision = over->decision;
    else if (precheck_add_module(precheck, over->name, (enum check_decision) over->decision) < 0)
        return fail(err, ERR_BAD_REQUEST,
                    "precheck.modules lists more than %d with those it extends; remove some",
                    PRECHECK_MODULES_MAX);
    for (size_t i = 0; i < precheck->module_count; i++)
        if (strcmp(precheck->modules[i].name, over->name) == 0)
            precheck->modules[i].bound = bound;
    return 0;
}

int precheck_merge(struct precheck *precheck, const struct precheck *over, error *err)
{
    if (!over->is_on)
        return 0;
    if (!precheck->is_on)
        precheck_init(precheck);
    for (size_t i = 0; i < over->module_count; i++)
        if (merge_module(precheck, &over->modules[i], err) < 0)
            return -1;
    for (unsigned rule = 0; rule < CHECK_RULES; rule++) {
        uint32_t bit = 1U << rule;
        if (!(over->stated & bit))
            continue;
        if ((precheck->stated & bit) && over->rules[rule] < precheck->rules[rule])
            return fail_laxer(rule == CHECK_module ? "modules.others" : check_rows[rule].name, "",
                              (enum check_decision) over->rules[rule],
                              (enum check_decision) precheck->rules[rule], err);
        precheck->rules[rule] = over->rules[rule];
        precheck->stated |= bit;
    }
    return 0;
}
