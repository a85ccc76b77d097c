/* activities.c - the table of activities. */
#include "engine/session/activity.h"
#include "engine/session/branch.h"
#include "engine/session/checkpoints.h"
#include "engine/session/contexts.h"
#include "engine/session/rollback.h"

#include <stddef.h>

/* The order in which they are called when a session ends: a rollback releases its checkpoint
 * first. */
const struct session_activity *const session_activities[] = { &context_activity, &branch_activity,
                                                              &rollback_activity,
                                                              &checkpoint_activity, NULL };
