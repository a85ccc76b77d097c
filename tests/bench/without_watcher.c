/* without_watcher.c - for the bench alone: a glovebox-init that watches neither memory nor
 * processes where no control group counts them, so that what watching costs can be seen. It is
 * linked with
 * --wrap=bound_usage and never installed. */
#include "init/init.h"

int __wrap_bound_usage(struct sandbox *sandbox, const struct agent_bound *bound, error *err);

/* Without a bound there is nothing to watch. */
int __wrap_bound_usage(struct sandbox *sandbox, const struct agent_bound *bound, error *err)
{
    (void) sandbox;
    (void) bound;
    (void) err;
    return 0;
}
