/* languages.h - the names that people give a language, and the one that stands for all of them. */
#pragma once

#include <stdbool.h>

/* "node" for js and javascript; a name that is not known is its own. */
const char *language_name(const char *name);

/* Do two names mean the same? */
bool language_is(const char *name, const char *other);
