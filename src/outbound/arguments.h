/* arguments.h - reads the command lines of programs that connect outwards: pairs of an option and
 * its value; open files are given by descriptor number. */
#pragma once

#include "base/error.h"

#include <stddef.h>

struct argument {
    const char *name;
    int *number;       /* a descriptor, or another number; NULL: the value is a text */
    const char **text; /* with a number, what follows it: NUMBER=TEXT */
};

/* Texts point into `words`. Options that are not given leave their variables unchanged.
 * Fails  ERR_BAD_REQUEST  for an unknown option, and for one without a value. */
int arguments_read(int count, char **words, const struct argument *known, size_t known_count,
                   error *err);
