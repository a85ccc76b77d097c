/* template_verify.h - `glovebox template verify`: are the files those that the digest says? */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct template_verification {
    const char *state;
    const char *name; /* NULL: all templates */
    bool record;      /* each becomes an event in the log of receipts; at the lowest priority */
    bool json;
};

/* Prints a line for each. Returns 0 if all are as built, 1 if one is not; -1 with *err. */
int template_verify_all(const struct template_verification *asked, error *err);
