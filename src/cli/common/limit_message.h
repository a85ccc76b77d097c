/* limit_message.h - the message about a limit, for a terminal: with the name of the option instead
 * of the field of a request. */
#pragma once

#include "glovebox.h"

/* Prints one line on stderr. The option is `before`, the name of the limit and `after`. */
void limit_message_print(const glb_limit_reached *limit, const char *before, const char *after);

/* The option of a limit, without the dashes before it: "artifact-files". */
const char *limit_option(const char *name, char *text, size_t size);
