/* errors.h - how a failure is reported: its code in JSON, HTTP status and exit status. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct error_row {
    const char *name;      /* "BAD_REQUEST" */
    const char *json_code; /* "bad_request" */
    int http_status;
    int exit_status;
    bool retryable; /* the same request may succeed later */
    const char *text;
};

/* The row of an enum error_code. A code that does not exist, or ERR_NONE, is a bug of glovebox: it
 * gets the row of ERR_INTERNAL. */
const struct error_row *error_row_of(int code);

/* What caused it: "caller", "policy" or "glovebox". */
const char *error_fault(int code);
