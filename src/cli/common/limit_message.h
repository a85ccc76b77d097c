/* limit_message.h - what a limit did, for a terminal: where the daemon names the field of a
 * request, people read the option. */
#pragma once

#include "glovebox.h"

/* One line on stderr. The option is `before`, the name of the limit and `after`. */
void limit_message_print(const glb_limit_reached *limit, const char *before, const char *after);

/* The option of a limit, without the dashes before it: "artifact-files". */
const char *limit_option(const char *name, char *text, size_t size);
