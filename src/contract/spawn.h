/* spawn.h - what gloveboxd asks of glovebox-spawner, and what it answers.
 *
 * One SEQPACKET socket, one peer. A message is a packet (base/packet.h): a kind, a body of exactly
 * the size of its struct, and exactly the descriptors named here. Numbers only: no text is read. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { SPAWN_VERSION = 3, SPAWN_TEMPLATES_MAX = 32, SPAWN_PORTS_MAX = 8 };

/* Walls, as bits: those that stand are in `walls`, those that this machine or this user cannot have
 * are in `degraded`. The names for people are in model/walls.def. */
enum wall {
#define WALL(name, ...) WALL_##name,
#include "model/walls.def"
    WALLS
};

/* Controllers of the control groups of a sandbox, in the order of the descriptors that are passed.
 * With cgroup v2 there is one directory for all of them and it is passed once, as GROUP_UNIFIED. */
enum group_kind {
#define CGROUP(name, text) GROUP_##name,
#include "contract/cgroups.def"
    GROUPS
};

enum spawn_kind {
    /* spawner -> daemon */
    SPAWN_HELLO = 1, /* struct spawn_hello, once, when it is ready to serve */
    SPAWN_BUILT,     /* struct spawn_built; on success fds: inside stream, pidfd of init, then one
                        read-only directory for each bit of `groups`, lowest bit first */
    SPAWN_RELEASED,  /* struct spawn_released */
    SPAWN_LOST,      /* struct spawn_slot: the sandbox's init ended without being asked to */

    /* daemon -> spawner: the rows of handlers[] */
    SPAWN_BUILD = 32, /* struct spawn_build -> SPAWN_BUILT */
    SPAWN_RELEASE,    /* struct spawn_slot: end every process of the sandbox, init included, remove
                         the control group, free the slot -> SPAWN_RELEASED */
    SPAWN_FREEZE,     /* struct spawn_slot: freeze every process but init, if a group can */
    SPAWN_THAW,       /* struct spawn_slot */
    SPAWN_INJECT,     /* struct spawn_inject: one more interpreter of the sandbox's own zygote. Init
                         reports the outcome: STARTED, or DONE with an error (agent.h) */
    SPAWN_TEMPLATE, /* struct spawn_template; fds: a directory in the templates' folder, which holds
                       `root`, and the modules of its zygotes (sealed memory). Without fds the
                       index has no template any more. The previous template of that index is
                       closed, with every sandbox of it */
    SPAWN_IDLE,     /* struct spawn_slot: all sandboxes of its tenant get processor time only while
                       other tenants want none (cpu.idle, Linux 5.15) */
    SPAWN_USUAL,    /* struct spawn_slot: no longer */
};

struct spawn_hello {
    uint32_t version;
    uint32_t slots; /* sandboxes that may exist at once */
    uint32_t first_slot;
    uint32_t groups;   /* bits of enum group_kind */
    uint64_t walls;    /* bits of enum wall: those that the control groups here give */
    uint32_t swept;    /* sandboxes of a dead instance that have been removed */
    uint32_t reserved; /* 0 */
};

/* A build is given up after SPAWN_BUILD_MS. One that then waits for a zygote to import its modules
 * has SPAWN_WARM_MS from there on: a disk that has to read them first can take 10 s. */
enum { SPAWN_BUILD_MS = 10000, SPAWN_WARM_MS = 55000 };

/* The modules: for each zygote its names with a comma between them, ended by NUL. */
enum { SPAWN_SETS_MAX = 4, SPAWN_MODULES_MAX = 4096 };

struct spawn_template {
    uint32_t template; /* index by which builds name it, below SPAWN_TEMPLATES_MAX */
    uint32_t sets;     /* how many zygotes it can have, at most SPAWN_SETS_MAX */
};

/* Network of a sandbox. */
enum spawn_network { SPAWN_NETWORK_NONE, SPAWN_NETWORK_LOOPBACK, SPAWN_NETWORK_KINDS };

/* How the first interpreter comes into being. */
enum spawn_start { SPAWN_EMPTY, SPAWN_FORKED, SPAWN_STARTS };

/* The egress of a sandbox with SPAWN_NETWORK_LOOPBACK: every address is local inside, and sockets
 * listen there for DNS (UDP and TCP 53), for the proxy (TCP 3128) and on these TCP ports. They come
 * to gloveboxd with HELLO (agent.h). The namespace has no route out. */
struct spawn_route {
    uint16_t is_open; /* 1, or 0 for none */
    uint16_t port_count;
    uint16_t ports[SPAWN_PORTS_MAX];
    uint32_t reserved; /* 0 */
};

struct spawn_build {
    uint64_t request;  /* comes back in the answer */
    uint32_t template; /* index */
    uint32_t network;  /* enum spawn_network */
    uint32_t start;    /* enum spawn_start: SPAWN_FORKED also injects a child of a zygote */
    uint32_t zygote;   /* index among the template's zygotes, for SPAWN_FORKED */
    uint32_t tenant;   /* zygotes are not shared between tenants */
    uint32_t open_files;
    uint64_t memory_bytes;
    uint64_t processes;
    uint64_t disk_bytes;
    uint64_t inodes;
    uint64_t cpus_milli;      /* 0 = not limited */
    uint64_t disk_read_rate;  /* bytes a second, 0 = not limited */
    uint64_t disk_write_rate; /* the same */
    struct spawn_route route;
};

struct spawn_built {
    uint64_t request;
    uint32_t slot;
    uint32_t generation; /* slots are used again; a stale (slot, generation) is refused */
    uint64_t walls;
    uint64_t degraded;
    uint32_t groups; /* bits of enum group_kind whose directories follow */
    uint32_t padding;
    error err; /* code ERR_NONE if it was built */
};

struct spawn_slot {
    uint32_t slot;
    uint32_t generation;
};

struct spawn_inject {
    uint32_t slot;
    uint32_t generation;
    uint32_t id; /* by which init will know it, as a program */
};

enum { SPAWN_IS_BACK = UINT32_MAX }; /* for leftovers */

struct spawn_released {
    uint32_t slot;
    uint32_t generation;
    uint32_t leftovers; /* processes or groups that could not be removed; must be 0. SPAWN_IS_BACK:
                           those that were reported before are gone, and the slot is free again */
    uint32_t padding;
};
