/* languages.h - the names of a language, and the one that templates use. */
#pragma once

#include <stdbool.h>

/* "node" for js and javascript; an unknown name is returned unchanged. */
const char *language_name(const char *name);

/* Do two names mean the same? */
bool language_is(const char *name, const char *other);
