/* default_policy.c - see default_policy.h. */
#include "policy/default_policy.h"

#include <stddef.h>

const char *default_policy_name(const char *setting,
                                bool (*can_use)(const void *context, const char *policy),
                                const void *context)
{
    if (setting && setting[0])
        return setting;
    return can_use(context, "data") ? "data" : "minimal";
}
