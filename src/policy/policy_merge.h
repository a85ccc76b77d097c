/* policy_merge.h - one policy file over those that it extends, for policy_load.c. */
#pragma once

#include "policy/policy_file.h"

#include <limits.h>

/* One file, with the name that it has in failures. */
struct policy_link {
    char label[PATH_MAX];
    struct policy_file file;
};

/* Fails with the label of the file and this place in it. */
int policy_fail_at(const struct policy_link *link, struct place place, error *err,
                   const char *text);

/* Lays one file over what those that it extends have given. */
int policy_merge(const struct policy_link *link, struct policy *policy, error *err);
