/* policy_file.h - the contents of one policy file, before it is merged over those that it extends.
 * For policy_load.c and policy_merge.c; other files use policy.h. */
#pragma once

#include "policy/approval_file.h"
#include "policy/expect_file.h"
#include "policy/policy.h"
#include "policy/policy_origins.h"
#include "policy/precheck_file.h"
#include "policy/yaml.h"

struct place {
    int line, column;
};

/* The limits of a file, each with its position for later errors. */
struct stated_limits {
    uint64_t given; /* bits of enum limit_id */
    struct limits values;
    struct place places[LIMITS];
};

struct policy_file {
    char name[POLICY_NAME_SIZE];
    char extends[POLICY_NAME_SIZE];
    char description[POLICY_DESCRIPTION_SIZE]; /* this and the following: "" or 0 = not given */
    char template[POLICY_NAME_SIZE];
    enum policy_network network;
    struct policy_sessions sessions;
    struct place sessions_place;
    struct network_policy route;
    struct precheck precheck;
    struct precheck_lines precheck_lines;
    struct place precheck_place;
    struct policy_approval approval;
    struct approval_lines approval_lines;
    struct policy_expect expect;
    struct place expect_place;
    int on_fault_line; /* 0: not given */
    size_t language_count;
    char languages[POLICY_LANGUAGES_MAX][POLICY_LANGUAGE_SIZE];
    struct stated_limits limits;
    struct stated_limits maximum;
    size_t variable_count;
    struct policy_variable variables[POLICY_VARIABLES_MAX];
    int key_lines[POLICY_KEYS]; /* 0: the file does not have the key */
    struct place name_place;
    struct place extends_place;
};

/* Reads a parsed file. Fails  ERR_BAD_REQUEST  with the place, the cause and the fix. */
int policy_file_read(const struct yaml *yaml, struct policy_file *ret_file, error *err);
