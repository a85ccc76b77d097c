/* precheck.h - what a policy makes of the findings of a look at code before it runs, as plain
 * values. The look is a lint: it sees what code says openly and nothing else. The sandbox is the
 * boundary. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From lax to strict: of several decisions the largest counts. */
enum check_decision { CHECK_ALLOW, CHECK_WARN, CHECK_ASK, CHECK_DENY, CHECK_DECISIONS };

enum check_rule {
#define CHECK(name, ...) CHECK_##name,
#include "policy/precheck_rules.def"
    CHECK_RULES
};

enum { PRECHECK_MODULES_MAX = 64, PRECHECK_MODULE_SIZE = 48 };

struct precheck_module {
    char name[PRECHECK_MODULE_SIZE]; /* "os" stands for "os.path" too */
    unsigned char decision;          /* enum check_decision */
    uint32_t bound; /* bits of enum check_rule: stated in files that this one's extends, so that
                       being listed makes nothing laxer than they say */
};

struct precheck {
    bool is_on;                       /* a file has the key, with or without content */
    uint32_t stated;                  /* bits of enum check_rule: a file says its decision */
    unsigned char rules[CHECK_RULES]; /* enum check_decision */
    size_t module_count;
    struct precheck_module modules[PRECHECK_MODULES_MAX]; /* that are listed, sorted by name */
};

struct check_row {
    const char *name;
    enum check_decision start;
    const char *text;
};
extern const struct check_row check_rows[CHECK_RULES];

const char *check_decision_name(enum check_decision decision); /* "allow", "deny" */

/* The decision or rule of a word; CHECK_DECISIONS or CHECK_RULES if there is none. */
enum check_decision check_decision_find(const char *word);
enum check_rule check_rule_find(const char *word);

/* On, with every rule's own decision. */
void precheck_init(struct precheck *precheck);

/* Adds a module, or gives -1 if it is there with another decision or there is no room. */
int precheck_add_module(struct precheck *precheck, const char *name, enum check_decision decision);

/* What is said of a module by its own name or one that it lies in; NULL: it is not listed. */
const struct precheck_module *precheck_module(const struct precheck *precheck, const char *name);

/* What happens to a finding. An import of a listed module is decided by the list, whatever the
 * rule; `module` is NULL for a finding that is no import. */
enum check_decision precheck_decide(const struct precheck *precheck, enum check_rule rule,
                                    const char *module);

/* Lays `over` over `precheck`, which it may make stricter and never laxer than what is stated
 * there. Fails  ERR_BAD_REQUEST  naming the key, for the caller to put the place before it. */
int precheck_merge(struct precheck *precheck, const struct precheck *over, error *err);
