/* walls.h - the walls that a process raises for itself when it is in its namespaces. Used by init
 * (recipe.c) and by the child of a zygote, which joins a sandbox from outside. */
#pragma once

#include "base/error.h"

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Takes one id for user and group, real, effective and saved, and no other group. Capabilities of
 * the caller's user namespace stay, so that the walls below can be raised. */
int take_id(uid_t id, error *err);

struct resource_limits {
    uint64_t open_files;
    uint64_t processes; /* second limit after the control group; the only one without it */
    uint64_t disk_bytes;
};

int limit_resources(const struct resource_limits *limits, error *err);

/* Empties every capability set and the bounding set, locks the secure bits, sets no_new_privs.
 * See capabilities(7). */
int drop_privileges(error *err);
int set_no_new_privs(error *err);

/* Restricts files by Landlock: everything may be read and executed, the five writable places and
 * the sandbox's own terminals may be written. Without network TCP is refused as well; with the
 * sandbox's own loopback it is not, since the network namespace holds nothing else. Gives the ABI
 * of the kernel, 0 if it has no Landlock. Needs no_new_privs. Since Linux 5.13, landlock(7). */
int limit_files(bool has_loopback, int *ret_abi, error *err);
int ask_landlock(int *ret_abi, error *err); /* the ABI alone */

/* Installs a compiled filter; refused calls wait for an answer at *ret_listener, which the caller
 * closes. Needs no_new_privs. See seccomp_unotify(2). */
int limit_syscalls(const struct sock_filter *filter, unsigned instructions, int *ret_listener,
                   error *err);

/* Joins the control groups behind these procs files: the kernel reads "0" as the writer itself. */
int join_groups(const int *procs, unsigned count, error *err);

/* Raises the score by which the kernel chooses what to kill; the caller may ignore a failure. */
int set_oom_score(void);
