/* config.h - the settings of a service from defaults, file, environment and flags; a later source
 * overrides earlier ones. */
#pragma once

#include "base/error.h"
#include "policy/settings.h"

/* The command line: a value for each setting, NULL if it is not given. */
struct config_flags {
    const char
        *file; /* --config; NULL: GLOVEBOX_CONFIG, else glovebox.yaml of the system if it exists */
    const char *values[SETTINGS];
};

/* Fails  ERR_BAD_REQUEST  naming the file with line and column, the variable or the flag. */
int config_read(const struct config_flags *flags, struct settings *ret_settings, error *err);
