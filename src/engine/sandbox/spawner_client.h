/* spawner_client.h - asks glovebox-spawner for sandboxes and receives its reports.
 *
 * Every build has a number; its answer goes to the caller. A sandbox is known by its slot and
 * generation. When the spawner ends, every pending build fails and `gone` is called once. */
#pragma once

#include "base/error.h"
#include "contract/spawn.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

/* A sandbox that was just built. The callee owns the descriptors. */
struct spawned {
    struct spawn_slot name;
    uint32_t tenant; /* that it was built for */
    uint64_t walls;
    uint64_t degraded;
    int inside;
    int groups[GROUPS]; /* -1: none */
};

/* Called once for each build: `spawned` is NULL if it failed, and *cause says why. */
typedef void spawner_built(void *context, const struct spawned *spawned, const error *cause);

/* Callbacks for the owner of the sandboxes. */
struct spawner_watcher {
    void *context;
    void (*hello)(void *context);
    void (*released)(void *context, const struct spawn_released *released);
    void (*lost)(void *context, const struct spawn_slot *name);
    void (*gone)(void *context);
};

enum { SPAWNER_GIVEN_BACK_MAX = 32 };

struct spawner_link {
    uv_loop_t *loop;
    uv_poll_t poll;
    int socket;
    bool is_open;
    bool is_cut;             /* the current packet has lost its descriptors */
    unsigned long files_max; /* descriptors that this process may have */
    struct spawn_slot given_back[SPAWNER_GIVEN_BACK_MAX]; /* before a request got them */
    unsigned given_back_count;
    bool said_hello;
    struct spawn_hello hello;
    struct spawner_watcher watcher;
    uint64_t last_request;
    struct waiting_build *builds;
    struct unsent *unsent, **unsent_end; /* while the socket is full */
};

/* Takes the socket. */
int spawner_open(struct spawner_link *link, uv_loop_t *loop, int socket,
                 const struct spawner_watcher *watcher, error *err);
void spawner_close(struct spawner_link *link);

/* Asks for a sandbox; `build->request` is set here. */
int spawner_build(struct spawner_link *link, struct spawn_build *build, spawner_built *built,
                  void *context, error *err);

/* Gives the spawner a template: its directory and the modules of its zygotes (both borrowed);
 * without `fds` ends it. Nothing is queued: fails  ERR_SYSTEM  EAGAIN if the socket is full. */
int spawner_template(int socket, const struct spawn_template *template, const int *fds, error *err);

/* Asks for one more interpreter in a sandbox; init reports what happens to it. One at a time. */
int spawner_inject(struct spawner_link *link, const struct spawn_slot *name, uint32_t id,
                   error *err);

/* Freezes every process of the sandbox except init, or thaws them. Its control group shows the
 * state: counters_freezer(). */
void spawner_freeze(struct spawner_link *link, const struct spawn_slot *name, bool is_frozen);

/* Schedules all sandboxes of its tenant as idle, or as usual. */
void spawner_schedule(struct spawner_link *link, const struct spawn_slot *name, bool is_idle);

/* Ends every process of the sandbox, frees its slot, and then calls `released`. */
void spawner_release(struct spawner_link *link, const struct spawn_slot *name);
