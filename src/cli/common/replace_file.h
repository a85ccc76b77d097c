/* replace_file.h - configuration that a verb writes after a person has seen it. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Writes `text` and an end of line; the new file takes the place of the old one at once, with its
 * permissions, `mode` if there was none. A link stays one. Folders that are missing are made. */
int replace_file(const char *path, const char *text, unsigned mode, error *err);

/* Asks at a terminal. False where stdin is none. */
bool says_yes(const char *question);
