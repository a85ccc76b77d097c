/* output_check_report.h - the verdict on an output, on stderr. */
#pragma once

#include <glovebox.h>

#include <stdbool.h>

/* Says in one line why an output has not passed its gate; with is_verbose also that it has. Does
 * nothing if nothing was expected of it. */
void output_check_tell(const glb_outcome *outcome, bool is_verbose);
