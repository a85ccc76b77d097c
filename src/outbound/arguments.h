/* arguments.h - the command lines that gloveboxd writes for programs that reach outside: pairs of
 * an option and its value, open files by their number. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct argument {
    const char *name;
    int *number;       /* a descriptor, or another number; NULL: the value is a text */
    const char **text; /* with a number, what stands behind it: NUMBER=TEXT */
};

/* Texts are borrowed of `words`. What is not said stays as it was.
 * Fails  ERR_BAD_REQUEST  for an option that is none, and for one without a value. */
int arguments_read(int count, char **words, const struct argument *known, size_t known_count,
                   error *err);
