/* decide.h - asks the person at the terminal, when a run of his own waits for a decision. */
#pragma once

#include <glovebox.h>

#include <stdbool.h>

/* Does it wait, and is somebody there to be asked? Programs (--json) are not. */
bool decide_is_wanted(const glb_outcome *outcome, bool is_for_programs);

/* Shows the card on the terminal and tells the daemon what was said. Returns whether it
 * was decided: the same run again tells what came of it. */
bool decide_at_terminal(glb_client *client, const glb_outcome *outcome);
