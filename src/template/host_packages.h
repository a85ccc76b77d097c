/* host_packages.h - the packages of this machine, and what each needs, as dpkg tells it. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct host_package {
    char *name;     /* as others depend on it */
    char *own_name; /* as dpkg-query wants it: with ":architecture" where that is needed */
    char *version;
    char *needs; /* "a (>= 1), b | c" */
    bool essential, wanted;
};

/* A name that a package answers to: its own, or one it provides. */
struct host_name {
    const char *name;
    size_t package;
};

struct host_packages {
    char *text; /* owns all texts */
    struct host_package *packages;
    struct host_name *names; /* sorted */
    size_t count, name_count, name_room;
};

/* Asks dpkg. Gives *ret_all, freed with host_packages_done(). */
int host_packages_read(struct host_packages *ret_all, error *err);
void host_packages_done(struct host_packages *all);

/* Marks a package and all that it needs as wanted.
 * Fails  ERR_UNAVAILABLE  it is not installed here */
int host_packages_want(struct host_packages *all, const char *name, error *err);
