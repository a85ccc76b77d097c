/* spawner.h - all state of glovebox-spawner: its settings, its fork servers and its slots.
 *
 * Everything here has a fixed size and lives in one static object: no heap, no thread. */
#pragma once

#include "base/error.h"
#include "base/packet.h"
#include "contract/build.h"
#include "contract/spawn.h"
#include "contract/zygote.h"

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SLOTS_HERE_MAX = 4096,
    SLOTS_KEEPING = 64, /* taken first: they keep control groups, to use them again */
    FILTERS = SPAWN_NETWORK_KINDS,
    ZYGOTES_MAX = 64,     /* for all templates, sets and tenants */
    INTERPRETER_ENDS = 4, /* stdin, stdout, stderr, control */
};

/* The directory of our control groups: of all cgroup v2, or of one controller of v1. */
struct group_root {
    enum group_kind kind;
    const char *path; /* from the command line */
    int directory;
    int holders; /* procs file of the group that fork servers and inits share */
};

struct template
{
    int directory; /* holds its root; -1 = there is no such template */
    int modules;   /* of its zygotes: the fork server reads them */
    uint32_t sets;
    int fork_server; /* pidfd, since a pid can be used again; 0 = not running */
    int fork_server_socket;
};

/* A warmed interpreter that is forked into sandboxes; each tenant has its own. */
struct zygote {
    int socket; /* -1 = this entry is free */
    uint32_t template;
    uint32_t set;
    uint32_t tenant;
    uint32_t forks;
    int64_t started_ms;
    bool ready;
    bool is_old; /* it is being replaced, and ends when its last fork is answered */
    uint32_t unanswered;
};

/*  free --> building --> standing --> leaving --> free
 *              |                         ^
 *              +-------------------------+           (a sandbox is never used twice)   */
enum slot_state { SLOT_FREE, SLOT_BUILDING, SLOT_STANDING, SLOT_LEAVING };

struct slot {
    enum slot_state state;
    uint32_t generation;
    uint32_t template;
    bool asked_to_leave; /* gloveboxd waits for SPAWN_RELEASED */
    bool lost;           /* init ended by itself: the leaf stays until gloveboxd has read it */
    bool is_frozen;      /* its leaf has been frozen: thawed before the slot is free */
    bool stuck;          /* its processes do not end: they are checked again every few seconds */
    bool told_stuck;     /* gloveboxd knows that, and gets a message when the slot is free */
    bool failed;         /* the build failed. Reported when the slot is free again: until then */
    error cause;         /* gloveboxd counts the sandbox, and asks for no more than there are */
    uint64_t request;
    int64_t until_ms;  /* BUILDING: must be ready by then; LEAVING: must be gone by then */
    int init;          /* pidfd */
    int report;        /* init reports BUILD_READY here */
    int inside;        /* gloveboxd's end of the inside stream, until it is handed over */
    int procs[GROUPS]; /* procs files of its leaf */
    uint32_t procs_count;
    int ends[INTERPRETER_ENDS];
    const struct zygote *zygote; /* asked to fork its interpreter; NULL: none */
    struct spawn_build build;
    uint64_t walls;
    uint32_t groups; /* bits of enum group_kind that have a leaf */
    uint32_t kept;   /* leaves that were kept from the last sandbox, with counters reset */
    uint64_t degraded;
};

struct spawner {
    int daemon;
    int epoll;

    int program;          /* glovebox-init, copied into sealed memory */
    int filters[FILTERS]; /* seccomp programs, copied into sealed memory */
    int python;           /* directory of the zygote's files, -1 if none */
    bool unprivileged;
    uint32_t disk_major, disk_minor; /* device for I/O rates, 0:0 if unknown */
    uint64_t disabled_walls;         /* test builds only */

    struct group_root roots[GROUPS];
    unsigned root_count;
    char holders[24]; /* name of the group that fork servers and inits share */
    struct zygote zygotes[ZYGOTES_MAX];
    DIR *folder; /* of the templates */
    struct template templates[SPAWN_TEMPLATES_MAX];

    uint32_t first_slot; /* of the host-wide block that this instance has locked */
    uint32_t slot_count;
    uint32_t swept;
    bool is_swept; /* a build has failed since our control groups were removed */
    struct slot slots[SLOTS_HERE_MAX];
};

/* What an epoll event belongs to: a kind in the high word, an index in the low one. */
enum watched { WATCH_DAEMON, WATCH_HOLDER, WATCH_REPORT, WATCH_INIT, WATCH_ZYGOTE };
int watch(const struct spawner *from, int fd, enum watched kind, uint32_t index, error *err);

/* slots.c: which slots are ours, and the state of each. */
int lock_slots(struct spawner *spawner, const char *path, uint32_t count, error *err);
struct slot *slot_at(struct spawner *spawner, uint32_t number, uint32_t generation);
uint32_t slot_number(const struct spawner *spawner, const struct slot *slot);
struct slot *slot_take(struct spawner *spawner);
void slot_leave(struct spawner *spawner, struct slot *slot);
void slot_close_ends(struct slot *slot);
bool slots_tend(struct spawner *spawner);              /* true: some are leaving */
bool groups_were_swept(const struct spawner *spawner); /* by another service, gone by now */

/* groups.c: control groups, and writing of kernel files. */
int write_file(int directory, const char *name, const char *format, ...) PRINTF(3, 4);
int open_group_roots(struct spawner *spawner, error *err);
int open_groups(struct spawner *spawner, error *err);
int make_leaves(struct spawner *spawner, struct slot *slot, const struct spawn_build *build,
                error *err);
int open_leaf(const struct spawner *spawner, const struct slot *slot, enum group_kind kind);
int remove_leaves(const struct spawner *spawner, struct slot *slot);
void drop_kept_leaves(const struct spawner *spawner, struct slot *slot);
int set_frozen(const struct spawner *spawner, const struct slot *slot, bool frozen, error *err);
void close_groups(struct spawner *spawner);
uint32_t sweep_groups(struct spawner *spawner, bool (*is_abandoned)(uint32_t slot));
uint64_t walls_of_groups(const struct spawner *spawner);
uint64_t processes_backstop(const struct spawner *spawner, const struct spawn_build *build);

/* fork_servers.c: one process for each template that sandboxes are cloned from. */
int fork_server_start(struct spawner *spawner, uint32_t index, error *err);
void fork_server_lost(struct spawner *spawner, uint32_t index, const error *cause);
void fork_server_speaks(struct spawner *spawner, uint32_t index);

/* zygotes.c: warmed interpreters. */
int fork_interpreter(struct spawner *spawner, struct slot *slot, error *err);
void zygote_speaks(struct spawner *spawner, uint32_t index);
void zygotes_of_template_are_lost(struct spawner *spawner, uint32_t template);
void zygotes_tend(struct spawner *spawner);

/* template_root.c: runs in the new fork server, whose working directory is the template; ends in
 * exec or _exit. */
int enter_template_root(const struct spawner *spawner, error *err);

/* requests.c: what gloveboxd can ask. */
int answer(struct spawner *spawner, struct packet *packet, error *err);
void sandbox_reports(struct spawner *spawner, struct slot *slot);
void sandbox_stands(struct spawner *spawner, struct slot *slot);
void build_failed(struct spawner *spawner, struct slot *slot, const error *cause);
void tell_failed(struct spawner *spawner, uint64_t request, const error *cause);
