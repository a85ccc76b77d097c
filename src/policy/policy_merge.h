/* policy_merge.h - merges a policy file over those that it extends, for policy_load.c. */
#pragma once

#include "policy/policy_file.h"

#include <limits.h>

/* One file, with its name in failures. */
struct policy_link {
    char label[PATH_MAX];
    struct policy_file file;
};

/* Fails with the label of the file and a position in it. */
int policy_fail_at(const struct policy_link *link, struct place place, error *err,
                   const char *text);

/* Merges one file over the result of those that it extends. */
int policy_merge(const struct policy_link *link, struct policy *policy, error *err);
