/* walls.h - isolates a program of a build from the host: user, mount, pid, network, IPC and UTS
 * namespaces, ids of its own, a root without files of the host, the system call filter of
 * sandboxes, and a control group.
 *
 * The parent loads the filter and maps the ids, the child raises the walls for itself. There is no
 * weaker mode: if a wall cannot be raised, the child ends. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

/* A path of the host that the program sees. Read-only by default. */
struct walls_bind {
    const char *from, *to; /* `to` is below "/", without the leading '/' */
    bool writable;
};

struct walls {
    const char *root; /* the tree that becomes "/"; NULL: the host's /usr, and no more */
    const struct walls_bind *binds; /* and these, ended by a `from` of NULL; may be NULL */
    const char *disk;  /* a folder on the disk that must not get full; NULL: it writes to none */
    bool keeps_owners; /* many ids, with the capabilities for files and ids that dpkg needs */
    bool has_network;  /* the host's network, for fetching */
};

/* Loads the filter of sandboxes for the next child, in which refused calls fail with EPERM. */
int walls_load(const struct walls *walls, error *err);

/* The flags for clone(2) of the child. */
unsigned long walls_namespaces(const struct walls *walls);

/* What the child reads from `go` when its ids are mapped. */
enum { WALLS_GO = 'g', WALLS_GO_IN_GROUP = 'G' };

/* In the child: waits for `go`, then raises the walls, or prints one line on stderr and exits. */
void walls_raise(const struct walls *walls, int go);

/* The host's id of root in builds, which owns the tree while they run. */
uid_t walls_owner(void);

/* In the parent: maps the ids of the waiting child.
 * Fails  ERR_UNAVAILABLE  this machine gives none; the text says what to do. */
int walls_map_ids(const struct walls *walls, pid_t child, error *err);

/* A control group that limits memory and processes. If the caller may not make one (an ordinary
 * user without a delegated group) it is empty, and only resource limits apply. */
enum { BUILD_GROUP_PLACES = 4 };
struct build_group {
    unsigned count;
    char folder[BUILD_GROUP_PLACES][352];
};

int build_group_make(struct build_group *ret_group, error *err);
int build_group_join(const struct build_group *group, pid_t child, error *err);

/* Removes the group, in which no process may run any more. */
void build_group_done(struct build_group *group);

enum { BUILD_PROCESSES = 512, BUILD_MEMORY_MIB = 4096, BUILD_MINUTES = 60 };
