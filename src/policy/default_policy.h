/* default_policy.h - the policy of requests that name none. */
#pragma once

#include <stdbool.h>

/* `setting` as the operator has it, unless it is NULL or empty; else data where it can be used: its
 * template is built; else minimal. */
const char *default_policy_name(const char *setting,
                                bool (*can_use)(const void *context, const char *policy),
                                const void *context);
