/* build.h - what glovebox-spawner asks of a template's fork server, and what the new init reports.
 *
 * The fork server is glovebox-init in its first role: its root is already that of the template, and
 * it is root of a mapped user namespace. For each BUILD_SANDBOX it clones itself into new
 * namespaces; the clone follows the recipe (init/recipe.c) and is pid 1 of the sandbox. Messages
 * are packets on a SEQPACKET socket, as in spawn.h. */
#pragma once

#include "base/error.h"
#include "contract/spawn.h"

enum build_kind {
    FORK_SERVER_READY = 1, /* fork server -> spawner: struct fork_server_ready */
    BUILD_SANDBOX,         /* spawner -> fork server: struct build_sandbox; fds as listed below */
    BUILD_CLONED, /* fork server -> spawner: struct build_cloned; fd: pidfd of init, on success */
    BUILD_ZYGOTE, /* spawner -> fork server: struct build_zygote; fd: the zygote's socket */
    BUILD_READY,  /* init -> spawner over its own report socket: struct build_ready; with
                     SPAWN_FORKED four fds: stdin, stdout, stderr, control of the interpreter */
    BUILD_EXPECT, /* spawner -> init over that socket, later: struct spawn_inject, for one more
                     interpreter; answered by BUILD_READY with its four fds */
};

enum { BUILD_FILTER_MAX = 4096 }; /* instructions; the kernel's own bound (BPF_MAXINSNS) */

/* Descriptors that come with BUILD_SANDBOX: the inside stream, the report socket, then the procs
 * files of the fork servers' group and of the program's group, `groups` of each. */
struct build_sandbox {
    uint32_t slot;
    uint32_t generation;
    uint32_t agent_outer_id; /* id in the fork server's user namespace that becomes AGENT_ID */
    uint32_t network;
    uint32_t start;
    uint32_t groups; /* how many procs files of each kind follow */
    uint32_t open_files;
    uint32_t disabled_walls_low; /* test builds only: bits of enum wall that are disabled */
    uint32_t tenant;             /* resources of an ended sandbox are reused for the same only */
    uint32_t reserved;           /* 0 */
    uint64_t processes;
    uint64_t disk_bytes;
    uint64_t inodes;
    struct spawn_route route;
};

/* Starts one of the zygotes whose modules came with the template. */
struct build_zygote {
    uint32_t index;
    uint32_t reserved;
};

struct fork_server_ready {
    error err; /* code ERR_NONE if it has entered the template's root */
};

struct build_cloned {
    uint32_t slot;
    uint32_t generation;
    error err;
};

struct build_ready {
    uint32_t slot;
    uint32_t generation;
    uint64_t walls;
    uint64_t degraded;
    error err;
};
