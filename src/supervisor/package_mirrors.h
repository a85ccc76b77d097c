/* package_mirrors.h - the sets `pip`, `npm` and `apt`: what the package managers of this host ask,
 * read from their own configuration and written down as files that every user can read. Where a
 * client has nothing configured, none is written: the sets of public registries that came with
 * glovebox stand behind these in the search path.
 *
 *     pip   PIP_INDEX_URL, PIP_EXTRA_INDEX_URL; PIP_CONFIG_FILE, ~/.config/pip/pip.conf,
 *           ~/.pip/pip.conf, /etc/pip.conf
 *     npm   npm_config_registry; ~/.npmrc, /etc/npmrc
 *     apt   /etc/apt/sources.list, /etc/apt/sources.list.d
 *
 * Names and passwords in an address are not taken over: they would be the sandbox's. */
#pragma once

#include "base/error.h"

/* Writes STATE/policies/sets/NAME.yaml for each of the three, and removes one that is there no
 * more. `state` NULL: the default. Fails  ERR_SYSTEM  the folder cannot be written. */
int host_sets_write(const char *state, error *err);
