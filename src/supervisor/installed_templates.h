/* installed_templates.h - the templates that are built on this machine. */
#pragma once

#include "base/error.h"

#include <limits.h>
#include <stddef.h>

enum { TEMPLATES_MAX = 16 }; /* SPAWN_TEMPLATES_MAX is larger, for templates being replaced */

struct templates {
    size_t count;
    char names[TEMPLATES_MAX][NAME_MAX + 1];
    char *folder; /* STATE/templates; owned */
};

void templates_done(struct templates *templates);

#define auto_templates __attribute__((cleanup(templates_done))) struct templates

/* Those below `state` (NULL: the default), in order, but `first` first if it is there.
 * Fails  ERR_UNAVAILABLE  none is built, or more than can be served */
int templates_find(const char *state, const char *first, struct templates *ret, error *err);
