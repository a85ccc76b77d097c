/* sandbox.h - one sandbox as gloveboxd holds it: its name at the spawner, the stream to its init,
 * the directories of its counters. It carries frames both ways and knows nothing of runs. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"
#include "engine/sandbox/cgroup_counters.h"
#include "engine/sandbox/spawner_client.h"

#include <stdbool.h>
#include <sys/uio.h>

struct sandbox;

/* The current user of the sandbox. No callback follows `broken`. */
struct sandbox_user {
    void *context;
    /* As agent_frame_came: -1 gives the sandbox up as misbehaving. */
    int (*frame)(void *context, const struct agent_frame *frame, const unsigned char *payload,
                 error *err);
    void (*room)(void *context);  /* more may be sent */
    void (*route)(void *context); /* the egress listeners have come; may be NULL */
    void (*broken)(void *context, const error *cause); /* it ended or misbehaved: close it now */
};

/* Takes the descriptors in `spawned`, but not when it fails. */
int sandbox_open(struct spawner_link *spawner, const struct spawned *spawned,
                 struct sandbox **ret_sandbox, error *err);
/* Has init hold what no control group does. Before any code runs inside. */
void sandbox_bound(struct sandbox *sandbox, uint64_t memory_bytes, uint64_t processes);

void sandbox_use(struct sandbox *sandbox, const struct sandbox_user *user);

bool sandbox_is_broken(const struct sandbox *sandbox);

/* Nothing that it says is heard any more: it is about to be closed. */
void sandbox_ignore(struct sandbox *sandbox);

/* Gives it back to the spawner, which ends everything in it. No callback follows. */
void sandbox_close(struct sandbox *sandbox);

/* Puts one frame, whose payload is in up to two parts, behind those that wait. */
void sandbox_send(struct sandbox *sandbox, const struct agent_frame *frame,
                  const struct iovec *parts, int part_count);

/* The same with a descriptor, which is taken: it is closed when it has been sent, or never can be.
 * At most SANDBOX_GIFTS_MAX wait; beyond that it is closed, and the order comes without it. */
enum { SANDBOX_GIFTS_MAX = 8 };
void sandbox_send_with(struct sandbox *sandbox, const struct agent_frame *frame,
                       const struct iovec *parts, int part_count, int descriptor);

/* Writes what waits; what does not fit goes when there is room. */
void sandbox_flush(struct sandbox *sandbox);

/* False while too much output waits to be sent; `room` is called when that changes. */
bool sandbox_has_room(const struct sandbox *sandbox);

/* Gives it up, for an init that is deaf: `broken` follows, and its user closes it, which
 * ends every process in it from outside. */
void sandbox_kill(struct sandbox *sandbox, const error *cause);

/* Is what it says heard, or does it wait? */
void sandbox_hear(struct sandbox *sandbox, bool is_heard);

/* Has everything in it but init stand still, or run on: see counters_freezer(). */
void sandbox_freeze(struct sandbox *sandbox, bool is_frozen);

/* Gives the sockets that came with init's first word, which the caller owns then. Returns how many:
 * 0 if they have not come yet, or have been taken. */
enum { SANDBOX_SOCKETS_MAX = 3 + SPAWN_PORTS_MAX };
unsigned sandbox_take_sockets(struct sandbox *sandbox, int ret_sockets[SANDBOX_SOCKETS_MAX]);

/* The processor time that was used in it before its run: what it was when the sandbox was last said
 * to be at rest, or else what it is now. A look costs as much as a wake-up, and a request waits: at
 * rest the files of its counters are opened, too. */
void sandbox_rests(struct sandbox *sandbox);
uint64_t sandbox_cpu_before_us(const struct sandbox *sandbox);

const struct spawn_slot *sandbox_name(const struct sandbox *sandbox);
const struct group_directories *sandbox_groups(const struct sandbox *sandbox);
uint64_t sandbox_walls(const struct sandbox *sandbox);
uint64_t sandbox_degraded(const struct sandbox *sandbox);
