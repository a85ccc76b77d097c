/* expect_needs.h - what of a run has to be there to find out whether its output is as expected. */
#pragma once

#include <stdbool.h>

struct expect_needs {
    bool contents;  /* of its artifacts */
    bool result;    /* it shows values: a cell */
    bool artifacts; /* it is one that leaves some: no cell of a session */
};
