/* policy_origins.h - the file and line from which each statement of a policy comes (explain.h). */
#pragma once

#include "policy/policy.h"

enum { POLICY_FILES_MAX = POLICY_PARENTS_MAX + 1, POLICY_LABEL_SIZE = 256 };

/* The keys of a policy file, in their usual order. */
enum policy_key {
    /* clang-format off */
    POLICY_KEY_NAME, POLICY_KEY_EXTENDS, POLICY_KEY_DESCRIPTION, POLICY_KEY_TEMPLATE, POLICY_KEY_LANGUAGES,
    POLICY_KEY_LIMITS, POLICY_KEY_MAXIMUM, POLICY_KEY_NETWORK, POLICY_KEY_SESSIONS, POLICY_KEY_PRECHECK,
    POLICY_KEY_APPROVAL, POLICY_KEY_EXPECT, POLICY_KEY_ENV, POLICY_KEYS
    /* clang-format on */
};

/* The parts of `approval`, with each trigger of `when`. */
enum approval_part {
    APPROVAL_WHEN, /* and the next three: bits 0 to 3 of policy_asks */
    APPROVAL_BY = 4,
    APPROVAL_SCOPES,
    APPROVAL_EXPIRES,
    APPROVAL_PARTS
};

/* line 0: no file says it; it is a default. */
struct policy_origin {
    unsigned file; /* index into policy_origins.files */
    int line;
};

struct policy_origins {
    size_t file_count;
    char files[POLICY_FILES_MAX][POLICY_LABEL_SIZE]; /* paths; [0] is the policy itself */
    struct policy_origin keys[POLICY_KEYS];
    struct policy_origin approval[APPROVAL_PARTS];
    struct policy_origin expects[POLICY_FILES_MAX]; /* in the order of the list of expectations */
    struct policy_origin on_fault;
    struct policy_origin limits[LIMITS];
    struct policy_origin maximum[LIMITS];
    struct policy_origin rules[CHECK_RULES];            /* CHECK_module: modules.others */
    struct policy_origin modules[PRECHECK_MODULES_MAX]; /* in the order of precheck.modules */
};

/* As policy_load(), with the origins. */
int policy_load_origins(const char *path, const char *name, struct policy *ret_policy,
                        struct policy_origins *ret_origins, error *err);
