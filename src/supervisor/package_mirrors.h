/* package_mirrors.h - the host sets `pip`, `npm` and `apt`: the hosts that the package managers of
 * this host use, read from their configuration and written to files that every user can read. For a
 * client without configuration none is written: the sets of public registries that come with
 * glovebox follow in the search path.
 *
 *     pip   PIP_INDEX_URL, PIP_EXTRA_INDEX_URL; PIP_CONFIG_FILE, ~/.config/pip/pip.conf,
 *           ~/.pip/pip.conf, /etc/pip.conf
 *     npm   npm_config_registry; ~/.npmrc, /etc/npmrc
 *     apt   /etc/apt/sources.list, /etc/apt/sources.list.d
 *
 * Names and passwords in an address are left out, since sandboxes would see them. */
#pragma once

#include "base/error.h"

/* Writes STATE/policies/sets/NAME.yaml for each client with a configuration, and removes those of
 * others. `state` NULL: the default. Fails  ERR_SYSTEM  the folder cannot be written. */
int host_sets_write(const char *state, error *err);
