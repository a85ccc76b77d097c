/* precheck_file.c - reads
 *
 *     precheck:
 *       subprocess: deny
 *       modules: {allow: [numpy, pandas], deny: [ctypes], others: ask} */
#include "policy/precheck_file.h"

#include "base/table.h"
#include "base/text.h"

#include <string.h>

struct reading {
    const struct yaml *yaml;
    struct precheck *precheck;
    struct precheck_lines *lines;
    struct {
        char name[PRECHECK_MODULE_SIZE];
        int line;
    } modules[PRECHECK_MODULES_MAX]; /* in the order of the file */
};

static int read_decision(const struct reading *reading, const struct yaml_node *value,
                         enum check_decision *ret_decision, error *err)
{
    if (value->kind != YAML_TEXT || value->empty ||
        (*ret_decision = check_decision_find(value->text)) == CHECK_DECISIONS)
        return yaml_fail(reading->yaml, value, err,
                         "a decision is one word; write allow, warn, ask or deny");
    return 0;
}

static int state(struct reading *reading, const struct yaml_node *key, enum check_rule rule,
                 enum check_decision decision, error *err)
{
    if (reading->precheck->stated & (1U << rule))
        return yaml_fail(reading->yaml, key, err, "'%s' is there twice; remove one", key->text);
    reading->precheck->stated |= 1U << rule;
    reading->precheck->rules[rule] = (unsigned char) decision;
    reading->lines->rules[rule] = key->line;
    return 0;
}

/* Is it a possible name in an import, in ASCII: "numpy", "os.path", "node:fs", "@scope/name"? */
static bool is_module(const char *name)
{
    static const char marks[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_-./@:";
    size_t length = strlen(name);
    return length > 0 && length < PRECHECK_MODULE_SIZE && strspn(name, marks) == length;
}

static int read_module(struct reading *reading, const struct yaml_node *item,
                       enum check_decision decision, error *err)
{
    struct precheck *precheck = reading->precheck;
    if (item->kind != YAML_TEXT || item->empty || !is_module(item->text))
        return yaml_fail(reading->yaml, item, err,
                         "no name of a module; write numpy or os.path, at most %d bytes",
                         PRECHECK_MODULE_SIZE - 1);
    if (precheck->module_count == PRECHECK_MODULES_MAX)
        return yaml_fail(reading->yaml, item, err, "more than %d modules; remove some",
                         PRECHECK_MODULES_MAX);
    size_t at = precheck->module_count;
    if (precheck_add_module(precheck, item->text, decision) < 0)
        return yaml_fail(reading->yaml, item, err, "'%s' is listed twice; remove one", item->text);
    memcpy(reading->modules[at].name, item->text, item->length + 1);
    reading->modules[at].line = item->line;
    return 0;
}

static int read_modules(struct reading *reading, const struct yaml_node *value, error *err)
{
    const struct yaml *yaml = reading->yaml;
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err,
                         "modules is a mapping; write {allow: [numpy], deny: [ctypes], others: "
                         "ask}");
    unsigned seen = 0;
    for (const struct yaml_node *key = yaml_first(yaml, value), *list; key;
         key = yaml_next(yaml, list)) {
        enum check_decision decision = CHECK_DENY;
        list = yaml_next(yaml, key);
        if (key->kind == YAML_TEXT && strcmp(key->text, "others") == 0) {
            if (read_decision(reading, list, &decision, err) < 0 ||
                state(reading, key, CHECK_module, decision, err) < 0)
                return -1;
            continue;
        }
        decision = key->kind == YAML_TEXT ? check_decision_find(key->text) : CHECK_DECISIONS;
        if (decision == CHECK_DECISIONS)
            return yaml_fail(yaml, key, err, "modules has allow, warn, ask, deny, others");
        if (seen & (1U << decision))
            return yaml_fail(yaml, key, err, "'%s' is there twice; remove one", key->text);
        seen |= 1U << decision;
        if (list->kind != YAML_SEQUENCE)
            return yaml_fail(yaml, list, err, "a list of modules belongs here; write [ctypes]");
        for (const struct yaml_node *item = yaml_first(yaml, list); item;
             item = yaml_next(yaml, item))
            if (read_module(reading, item, decision, err) < 0)
                return -1;
    }
    return 0;
}

static int fail_unknown(const struct yaml *yaml, const struct yaml_node *key, error *err)
{
    char names[200] = "modules";
    for_each(row, check_rows)
        if (row != &check_rows[CHECK_module])
            (void) text_list(names, sizeof names, row->name);
    return yaml_fail(yaml, key, err, "precheck has no '%.*s'; it has %s", text_head(key->text, 24),
                     key->text, names);
}

static int read_key(struct reading *reading, const struct yaml_node *key,
                    const struct yaml_node *value, error *err)
{
    enum check_decision decision = CHECK_DENY;
    bool is_word = key->kind == YAML_TEXT && !key->empty;
    if (is_word && strcmp(key->text, "modules") == 0)
        return read_modules(reading, value, err);
    enum check_rule rule = is_word ? check_rule_find(key->text) : CHECK_RULES;
    if (rule == CHECK_RULES || rule == CHECK_module)
        return fail_unknown(reading->yaml, key, err);
    if (read_decision(reading, value, &decision, err) < 0)
        return -1;
    return state(reading, key, rule, decision, err);
}

/* Finds the lines of modules again, since their list has been sorted. */
static void place_modules(const struct reading *reading)
{
    for (size_t i = 0; i < reading->precheck->module_count; i++)
        for (size_t k = 0; k < reading->precheck->module_count; k++)
            if (strcmp(reading->precheck->modules[i].name, reading->modules[k].name) == 0)
                reading->lines->modules[i] = reading->modules[k].line;
}

int precheck_file_read(const struct yaml *yaml, const struct yaml_node *value,
                       struct precheck *ret_precheck, struct precheck_lines *ret_lines, error *err)
{
    struct reading reading = { .yaml = yaml, .precheck = ret_precheck, .lines = ret_lines };
    if (value->empty)
        return 0;
    if (value->kind != YAML_MAPPING)
        return yaml_fail(yaml, value, err,
                         "precheck is a mapping; write {subprocess: deny, modules: {deny: "
                         "[ctypes]}}, or {} for what is usual");
    precheck_init(ret_precheck);
    bool has_modules = false;
    for (const struct yaml_node *key = yaml_first(yaml, value), *part; key;
         key = yaml_next(yaml, part)) {
        part = yaml_next(yaml, key);
        bool is_modules = key->kind == YAML_TEXT && strcmp(key->text, "modules") == 0;
        if (is_modules && has_modules)
            return yaml_fail(yaml, key, err, "'modules' is there twice; remove one");
        has_modules |= is_modules;
        if (read_key(&reading, key, part, err) < 0)
            return -1;
    }
    place_modules(&reading);
    return 0;
}
