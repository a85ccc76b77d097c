/* expect_needs.h - what is needed of a run to check its output. */
#pragma once

#include <stdbool.h>

struct expect_needs {
    bool contents;  /* of its artifacts */
    bool result;    /* a value: only cells have one */
    bool artifacts; /* artifacts: cells of a session have none */
};
