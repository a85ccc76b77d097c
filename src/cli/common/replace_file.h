/* replace_file.h - writes configuration files that the user has confirmed. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

/* Writes `text` and a newline; the new file replaces the old one by rename(2), with its
 * permissions, or `mode` if there was none. The target of a link is replaced. It makes missing
 * folders. */
int replace_file(const char *path, const char *text, unsigned mode, error *err);

/* Asks at the terminal. False if stdin is not a terminal. */
bool says_yes(const char *question);
