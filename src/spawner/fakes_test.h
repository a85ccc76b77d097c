/* fakes_test.h - for tests of requests.c: control groups, fork servers and zygotes that only record
 * what was asked of them. Included by one file of a program. */
#pragma once

#include "base/test.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <sys/socket.h>

enum { FAKE_TEMPLATES = 2 };

static unsigned started[FAKE_TEMPLATES]; /* fork servers */
static unsigned frozen, thawed, interpreters;
static const struct slot *frozen_slot, *opened_slot;
static enum group_kind opened_kind;
static char written_name[32], written_text[8]; /* by the last write_file() */
static int leaf_to_open = -1;                  /* what open_leaf() duplicates; -1: it fails */

int watch(const struct spawner *from, int fd, enum watched kind, uint32_t index, error *err)
{
    (void) from;
    (void) fd;
    (void) kind;
    (void) index;
    (void) err;
    return 0;
}

/* A leaf beneath each root; its procs file is the root's directory. */
int make_leaves(struct spawner *spawner, struct slot *slot, const struct spawn_build *build,
                error *err)
{
    for (unsigned i = 0; i < spawner->root_count; i++) {
        slot->groups |= 1U << spawner->roots[i].kind;
        slot->procs[slot->procs_count++] = fcntl(spawner->roots[i].directory, F_DUPFD_CLOEXEC, 0);
    }
    (void) build;
    (void) err;
    return 0;
}

int open_leaf(const struct spawner *spawner, const struct slot *slot, enum group_kind kind)
{
    (void) spawner;
    opened_slot = slot;
    opened_kind = kind;
    return leaf_to_open < 0 ? -1 : fcntl(leaf_to_open, F_DUPFD_CLOEXEC, 0);
}

int write_file(int directory, const char *name, const char *format, ...)
{
    if (directory < 0)
        return -1;
    (void) snprintf(written_name, sizeof written_name, "%s", name);
    (void) snprintf(written_text, sizeof written_text, "%s", format);
    return 0;
}

int remove_leaves(const struct spawner *spawner, struct slot *slot)
{
    (void) spawner;
    (void) slot;
    return 0;
}

void drop_kept_leaves(const struct spawner *spawner, struct slot *slot)
{
    (void) spawner;
    slot->kept = 0;
}

int set_frozen(const struct spawner *spawner, const struct slot *slot, bool is_frozen, error *err)
{
    (void) spawner;
    (void) err;
    frozen += is_frozen;
    thawed += !is_frozen;
    frozen_slot = slot;
    return 0;
}

uint32_t sweep_groups(struct spawner *spawner, bool (*is_abandoned)(uint32_t slot))
{
    (void) spawner;
    (void) is_abandoned;
    return 0;
}

uint64_t walls_of_groups(const struct spawner *spawner)
{
    (void) spawner;
    return 0;
}

uint64_t processes_backstop(const struct spawner *spawner, const struct spawn_build *build)
{
    (void) spawner;
    return build->processes;
}

int fork_server_start(struct spawner *spawner, uint32_t index, error *err)
{
    (void) err;
    require(index < FAKE_TEMPLATES, "template %u is not on the command line", index);
    started[index]++;
    spawner->templates[index].fork_server = 1;
    return 0;
}

void fork_server_lost(struct spawner *spawner, uint32_t index, const error *cause)
{
    (void) cause;
    spawner->templates[index].fork_server = 0;
}

int fork_interpreter(struct spawner *spawner, struct slot *slot, error *err)
{
    (void) spawner;
    (void) slot;
    interpreters++;
    return fail(err, ERR_UNAVAILABLE, "no zygote");
}

static inline void open_pair(int *ret_ours, int *ret_theirs)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0,
            "a socket");
    *ret_ours = pair[0];
    *ret_theirs = pair[1];
}
