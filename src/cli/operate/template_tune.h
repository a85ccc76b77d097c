/* template_tune.h - `glovebox template tune`: proposes modules for the zygotes of a template to
 * import, from what programs have imported since the service started. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct template_tuning {
    const char *state, *name;
    const char *daemon; /* NULL: the usual place */
    bool json;
};

/* Prints the counts and a proposal. Fails  ERR_NOT_FOUND  no such template; as the daemon's
 * metrics */
int template_tune(const struct template_tuning *asked, error *err);
