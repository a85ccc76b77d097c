/* template_tune.h - `glovebox template tune`: which modules the zygotes of a template would better
 * import, by what programs have imported since the service began. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct template_tuning {
    const char *state, *name;
    const char *daemon; /* NULL: where it is looked for */
    bool json;
};

/* Prints the counts and a proposal. Fails  ERR_NOT_FOUND  no such template; as the daemon does. */
int template_tune(const struct template_tuning *asked, error *err);
