/* host_packages.h - the packages of this machine with their dependencies, from dpkg. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>

struct host_package {
    char *name;     /* for dependencies */
    char *own_name; /* for dpkg-query: with ":architecture" where that is needed */
    char *version;
    char *needs; /* "a (>= 1), b | c" */
    bool essential, wanted;
};

/* A name of a package: its own, or one that it provides. */
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

/* Reads them from dpkg. Gives *ret_all, freed with host_packages_done(). */
int host_packages_read(struct host_packages *ret_all, error *err);
void host_packages_done(struct host_packages *all);

/* Marks a package and all its dependencies as wanted.
 * Fails  ERR_UNAVAILABLE  it is not installed here */
int host_packages_want(struct host_packages *all, const char *name, error *err);
