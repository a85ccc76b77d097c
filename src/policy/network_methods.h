/* network_methods.h - names of the methods that rules can speak of. */
#pragma once

#include "policy/network_policy.h"

enum { NETWORK_METHODS = 7 };

struct network_method_row {
    const char *name;
    enum network_method bit;
};

extern const struct network_method_row network_methods[NETWORK_METHODS];
