/* config.h - the settings of a service from everywhere: defaults, file, environment, flags; the
 * later wins. */
#pragma once

#include "base/error.h"
#include "policy/settings.h"

/* What the command line said: a value for each setting, NULL if it is silent. */
struct config_flags {
    const char *
        file; /* --config; NULL: GLOVEBOX_CONFIG, else glovebox.yaml of the system if it is there */
    const char *values[SETTINGS];
};

/* Fails  ERR_BAD_REQUEST  naming the file with line and column, the variable or the flag. */
int config_read(const struct config_flags *flags, struct settings *ret_settings, error *err);
