/* precheck.h - a policy's decisions about findings of the check of code before it runs, as plain
 * values. The check is a lint: it only sees what code says openly. The sandbox is the boundary. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From lax to strict: of several decisions, the largest is used. */
enum check_decision { CHECK_ALLOW, CHECK_WARN, CHECK_ASK, CHECK_DENY, CHECK_DECISIONS };

enum check_rule {
#define CHECK(name, ...) CHECK_##name,
#include "policy/precheck_rules.def"
    CHECK_RULES
};

enum { PRECHECK_MODULES_MAX = 64, PRECHECK_MODULE_SIZE = 48 };

struct precheck_module {
    char name[PRECHECK_MODULE_SIZE]; /* "os" also covers "os.path" */
    unsigned char decision;          /* enum check_decision */
    uint32_t bound; /* bits of enum check_rule: rules stated in extended files, which the list must
                       not make laxer */
};

struct precheck {
    bool is_on;                       /* a file has the key, also an empty one */
    uint32_t stated;                  /* bits of enum check_rule: a file has this rule */
    unsigned char rules[CHECK_RULES]; /* enum check_decision */
    size_t module_count;
    struct precheck_module modules[PRECHECK_MODULES_MAX]; /* the listed ones, sorted by name */
};

struct check_row {
    const char *name;
    enum check_decision start;
    const char *text;
};
extern const struct check_row check_rows[CHECK_RULES];

const char *check_decision_name(enum check_decision decision); /* "allow", "deny" */

/* The decision or rule of this name; CHECK_DECISIONS or CHECK_RULES if there is none. */
enum check_decision check_decision_find(const char *word);
enum check_rule check_rule_find(const char *word);

/* Sets it to on, with the default decision of every rule. */
void precheck_init(struct precheck *precheck);

/* Adds a module. Returns -1 if it has another decision already, or if there is no room. */
int precheck_add_module(struct precheck *precheck, const char *name, enum check_decision decision);

/* Finds a module by its own name or by one that contains it; NULL: it is not listed. */
const struct precheck_module *precheck_module(const struct precheck *precheck, const char *name);

/* The decision about a finding. For an import of a listed module the list decides, not the rule;
 * `module` is NULL for other findings. */
enum check_decision precheck_decide(const struct precheck *precheck, enum check_rule rule,
                                    const char *module);

/* Merges `over` over `precheck`, which it may make stricter, but not laxer than what is stated
 * there. Fails  ERR_BAD_REQUEST  naming the key; the caller adds the position. */
int precheck_merge(struct precheck *precheck, const struct precheck *over, error *err);
