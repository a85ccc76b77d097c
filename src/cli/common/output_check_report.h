/* output_check_report.h - prints the verdict of the output check on stderr. */
#pragma once

#include <glovebox.h>

#include <stdbool.h>

/* Prints one line that says why an output has not passed its check; with is_verbose also that it
 * has passed. Nothing if there was no expectation. */
void output_check_tell(const glb_outcome *outcome, bool is_verbose);
