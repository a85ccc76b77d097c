/* sandbox.h - one sandbox of gloveboxd: its name at the spawner, the stream to its init, the
 * directories of its counters. It carries frames both ways and knows nothing of runs. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"
#include "engine/sandbox/cgroup_counters.h"
#include "engine/sandbox/spawner_client.h"

#include <stdbool.h>
#include <sys/uio.h>

struct sandbox;

/* The current user of the sandbox. After `broken` there are no callbacks. */
struct sandbox_user {
    void *context;
    /* As agent_frame_came; -1 ends the sandbox for breaking the protocol. */
    int (*frame)(void *context, const struct agent_frame *frame, const unsigned char *payload,
                 error *err);
    void (*room)(void *context);  /* more may be sent */
    void (*route)(void *context); /* the egress listeners have come; may be NULL */
    void (*broken)(void *context, const error *cause); /* it ended or failed: close it */
};

/* Takes the descriptors in `spawned`, except on failure. */
int sandbox_open(struct spawner_link *spawner, const struct spawned *spawned,
                 struct sandbox **ret_sandbox, error *err);
/* Tells init to enforce limits that no control group enforces. To be called before any code runs
 * inside. */
void sandbox_bound(struct sandbox *sandbox, uint64_t memory_bytes, uint64_t processes);

void sandbox_use(struct sandbox *sandbox, const struct sandbox_user *user);

bool sandbox_is_broken(const struct sandbox *sandbox);

/* Ignores all further frames: it is about to be closed. */
void sandbox_ignore(struct sandbox *sandbox);

/* Returns it to the spawner, which ends everything in it. There are no more callbacks. */
void sandbox_close(struct sandbox *sandbox);

/* Queues one frame, with a payload of up to two parts. */
void sandbox_send(struct sandbox *sandbox, const struct agent_frame *frame,
                  const struct iovec *parts, int part_count);

/* The same with a descriptor, which is taken, and closed when it was sent or cannot be sent. At
 * most SANDBOX_GIFTS_MAX are queued; beyond that it is closed, and the frame is sent without it. */
enum { SANDBOX_GIFTS_MAX = 8 };
void sandbox_send_with(struct sandbox *sandbox, const struct agent_frame *frame,
                       const struct iovec *parts, int part_count, int descriptor);

/* Writes queued frames; the rest is written when there is room. */
void sandbox_flush(struct sandbox *sandbox);

/* False while too many bytes are queued; `room` is called when that changes. */
bool sandbox_has_room(const struct sandbox *sandbox);

/* Gives up a sandbox whose init does not answer: `broken` follows, and its user closes it, which
 * ends every process in it from outside. */
void sandbox_kill(struct sandbox *sandbox, const error *cause);

/* Reads frames of init, or pauses reading. */
void sandbox_hear(struct sandbox *sandbox, bool is_heard);

/* Freezes all processes in it except init, or thaws them: see counters_freezer(). */
void sandbox_freeze(struct sandbox *sandbox, bool is_frozen);

/* Gives the sockets that came with init's hello; the caller owns them. Returns how many: 0 if they
 * have not come yet, or were taken. */
enum { SANDBOX_SOCKETS_MAX = 3 + SPAWN_PORTS_MAX };
unsigned sandbox_take_sockets(struct sandbox *sandbox, int ret_sockets[SANDBOX_SOCKETS_MAX]);

/* The processor time that was used before the run: the value when the sandbox was last reported at
 * rest, or else the current one. Reading it costs a wake-up while a request waits; therefore the
 * files of its counters are opened at rest, too. */
void sandbox_rests(struct sandbox *sandbox);
uint64_t sandbox_cpu_before_us(const struct sandbox *sandbox);

const struct spawn_slot *sandbox_name(const struct sandbox *sandbox);
const struct group_directories *sandbox_groups(const struct sandbox *sandbox);
uint64_t sandbox_walls(const struct sandbox *sandbox);
uint64_t sandbox_degraded(const struct sandbox *sandbox);
