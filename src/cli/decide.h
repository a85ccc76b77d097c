/* decide.h - asks the person at the terminal, when a run of his own waits for a decision. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stdbool.h>

/* Does it wait, and is somebody there to be asked? Programs (--json) are not. */
bool decide_is_wanted(const glb_outcome *outcome, bool is_for_programs);

/* Shows the card on the terminal and tells the daemon what was said. Returns whether it
 * was decided: the same run again tells what came of it. */
bool decide_at_terminal(glb_client *client, const glb_outcome *outcome);

/* Can somebody else decide while we wait? Not about a run without a daemon. */
bool decision_can_come(const glb_client *client, const glb_outcome *outcome);

enum { DECISION_CAME, DECISION_EXPIRED };

/* Says on stderr who can decide and how, and waits until somebody has. A daemon that is started
 * again meanwhile is waited for.
 * Returns  DECISION_CAME     the same run again tells which
 *          DECISION_EXPIRED  nobody has, in time
 * Fails    GLB_E_CANCELLED and as the API does: it waits on, and can be decided on later */
int wait_for_decision(glb_client *client, const glb_outcome *outcome, error *err);
