/* template_verify.h - `glovebox template verify`: do the files of a template match its digest? */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct template_verification {
    const char *state;
    const char *name; /* NULL: all templates */
    bool record;      /* record each in the log of receipts, at the lowest priority */
    bool json;
};

/* Prints a line for each. Returns 0 if all match, 1 if one does not, -1 with *err. */
int template_verify_all(const struct template_verification *asked, error *err);
