/* walls.h - what stands between a program of a build and the host: user, mount, pid, network, IPC
 * and UTS namespaces, ids of its own, a root without anything of the host, the system call filter
 * of sandboxes, and a control group.
 *
 * The parent loads the filter and maps the ids, the newborn child raises the walls around itself.
 * There is no weaker mode: what cannot be raised ends the child. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* A place of the host that a program with the host's programs sees. Read-only unless said. */
struct walls_bind {
    const char *from, *to; /* `to` is below "/", without the leading '/' */
    bool writable;
};

struct walls {
    const char *root; /* the tree that becomes "/"; NULL: the host's /usr, and no more */
    const struct walls_bind *binds; /* and these, ended by a `from` of NULL; may be NULL */
    const char *disk;  /* a folder on the disk that must not be filled; NULL: none is written */
    bool keeps_owners; /* many ids, and the capabilities over files and ids that dpkg needs */
    bool has_network;  /* the host's network, for fetching */
};

/* Loads the filter of sandboxes for the next child; a refused call fails with EPERM in it. */
int walls_load(const struct walls *walls, error *err);

/* The flags of clone(2) with which the child is made. */
unsigned long walls_namespaces(const struct walls *walls);

/* What the child reads at `go` when its ids are mapped. */
enum { WALLS_GO = 'g', WALLS_GO_IN_GROUP = 'G' };

/* In the child: waits at `go`, then raises the walls. What fails is one line on stderr, and the
 * end. */
void walls_raise(const struct walls *walls, int go);

/* The host's id of the one who is root in builds: who owns the tree while they run. */
uid_t walls_owner(void);

/* In the parent: maps the ids of a child that waits.
 * Fails  ERR_UNAVAILABLE  this machine gives none; the text says what to do. */
int walls_map_ids(const struct walls *walls, pid_t child, error *err);

/* A control group with bounds on memory and processes. Where the caller may make none (an ordinary
 * user without a delegated group) it has no places, and resource limits alone bound what runs. */
enum { BUILD_GROUP_PLACES = 4 };
struct build_group {
    unsigned count;
    char folder[BUILD_GROUP_PLACES][352];
};

int build_group_make(struct build_group *ret_group, error *err);
int build_group_join(const struct build_group *group, pid_t child, error *err);

/* Removes the group, in which nothing runs any longer. */
void build_group_done(struct build_group *group);

enum { BUILD_PROCESSES = 512, BUILD_MEMORY_MIB = 4096, BUILD_MINUTES = 60 };
