/* simulate.h - a deterministic simulation of gloveboxd in one process.
 *
 * The whole daemon runs, with its own main(), over a clock, a disk, a spawner and sandboxes of
 * ours. Everything that happens follows from a seed: what clients ask, how long each answer takes,
 * which call of the disk fails, and where the daemon is killed or the power is cut. A daemon that
 * has died is followed by the next one on the same state folder, in a process of its own; what must
 * hold over all of them lies in `world`, which the processes share.
 *
 *   See  docs/decisions/0131-simulation-of-gloveboxd.md */
#pragma once

#include "base/error.h"
#include "contract/spawn.h"
#include "engine/service/service.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uv.h>

enum {
    CALLERS = 4, /* two keys of one tenant, one of another, and the owner of the daemon */
    SIM_ORDERS_MAX = 160,
    SIM_RUNS_MAX = 512,
    SIM_SESSIONS_MAX = 64,
    FINDING_SIZE = 600,
    SIM_SLOTS_MAX = 8,
    RUN_TEXT = 48,
};

/* What a program does, a digit of its code. */
enum behaviour {
    DOES_PRINT,
    DOES_SLEEP, /* until it is stopped */
    DOES_FAIL,  /* exit code 3 */
    DOES_FILE,  /* leaves an artifact */
    DOES_BREAK, /* its init ends */
    DOES_LIE,   /* its init breaks the protocol */
    DOES_STALL, /* its init answers nothing any more */
    DOES_SLOW,  /* prints for a while */
    DOES_DIE,   /* a signal ends it */
    BEHAVIOURS
};

/* One thing that a client wants to have run once: with a key it is sent again and again, without it
 * is sent once. */
struct sim_order {
    uint8_t caller;
    bool has_key, is_cell;
    enum behaviour behaviour;
    unsigned executions;
    bool may_run_again; /* its key was younger than the promise when the power was cut */
};

/* A run that gloveboxd has begun, from run_note() on. */
struct sim_run {
    char id[RUN_TEXT];
    uint16_t order, incarnation;
    int64_t noted_us, answered_us; /* 0: it was not */
    bool is_executed;
    bool is_settled, key_is_settled; /* its receipt and its key have to be on the disk by now */
    bool may_lack_receipt;           /* they had not to be when the power was cut */
    char receipt[RUN_TEXT * 2];      /* that its answer named; "": none did */
};

struct sim_session {
    char id[RUN_TEXT];
    uint8_t caller;
};

/* How this daemon ends. */
enum ending { ENDS_WELL, ENDS_KILLED, ENDS_POWER_CUT, ENDINGS };

/* Bugs that can be planted, to show that they are found. */
enum plant {
    PLANT_NONE,
    PLANT_NO_INTENT,    /* a run begins without its note */
    PLANT_DOUBLE_FREE,  /* a slot is given back twice */
    PLANT_OTHER_TENANT, /* a run is handed out to every caller that names it */
    PLANT_LOST_SLOT,    /* a slot is not given back */
    PLANT_NO_KEY,       /* a key is not remembered */
    PLANT_FALSE_SYNC,   /* a sync that failed is believed */
    PLANTS
};

struct fault_window {
    int64_t from_us, until_us;
    unsigned no_space, sync_fails, is_short, open_fails, messages, no_memory; /* of 100 calls */
};

/* Shared by the processes of one seed. */
struct world {
    uint64_t seed, random[4];
    uint64_t hash; /* of the trace */
    uint64_t steps;
    bool is_verbose;
    enum plant plant;
    int64_t clock_us, wall_offset_us;

    /* of this daemon */
    unsigned incarnation;
    bool is_calm, sync_each;
    enum ending ending;
    uint64_t ops, ends_at_op;
    uint64_t boot;
    struct fault_window faults;
    unsigned slow_disk;              /* of 100 syncs take long */
    unsigned spare_writes;           /* that a reserve has made room for */
    int64_t last_fault_us, ready_us; /* 0: there was none; it is not */

    unsigned order_count, run_count, session_count;
    struct sim_order orders[SIM_ORDERS_MAX];
    struct sim_run runs[SIM_RUNS_MAX];
    struct sim_session sessions[SIM_SESSIONS_MAX];

    char finding[FINDING_SIZE]; /* "": none */
};

extern struct world *world;

/* Of places: the folder of a seed's state, and what it is copied from. */
struct places {
    char state[128], graves[128], base[128], templates[128], policies[128], settings[128];
    char keys[CALLERS][80]; /* texts of API keys; the last, of the owner, is "" */
};
extern struct places places;

/* --- world.c ---------------------------------------------------------------------------------- */

uint64_t chance(uint64_t below); /* 0 … below - 1, by the seed */
bool one_in(unsigned count);
void fill_random(void *to, size_t size);
void trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Something that must hold does not. Does not return in the daemon's process. */
void finding(const char *format, ...) __attribute__((format(printf, 1, 2)));
const char *tenant_of(unsigned caller);

/* Tells the model; see the invariants in world.c. */
void world_noted(const char *id, const char *code);
void world_executed(unsigned order, unsigned slot);
void world_answered(const char *id, unsigned caller, const char *result, size_t size);
void world_daemon_ends(enum ending ending);
bool order_in(const void *data, size_t size, unsigned *ret_order, enum behaviour *ret_behaviour);

/* --- clock.c ---------------------------------------------------------------------------------- */

extern bool sim_is_on; /* calls are simulated, in the daemon's process */
void clock_begin(void);
/* Calls it in so much time of the simulation, on the daemon's loop. */
void sim_after(int64_t us, void (*call)(void *context), void *context);
extern uv_loop_t *sim_loop;
void sim_op(void); /* one step more; may be the last */
enum { EXIT_DIED = 42, EXIT_FOUND = 43 };

/* --- call_faults.c ---------------------------------------------------------------------------- */

/* What plays spawner, init and clients is no part of gloveboxd: its calls do not fail. */
extern bool sim_is_outside;
void *__real_calloc(size_t count, size_t size);

/* --- disk.c ----------------------------------------------------------------------------------- */

void disk_map(void);   /* once, before processes are forked */
void disk_begin(void); /* of a seed */
void disk_cut(void);   /* after a power cut, when no process has a file open any more */

/* --- spawner.c -------------------------------------------------------------------------------- */

int spawner_begin(void);     /* gives the daemon's end of the socket */
void spawner_start(void);    /* the loop exists */
unsigned spawner_used(void); /* slots */
bool spawner_has_gone(void);

/* --- life.c ----------------------------------------------------------------------------------- */

void life_begin(void); /* the daemon has begun */

/* --- daemon.c --------------------------------------------------------------------------------- */

/* Runs one daemon to its end, in a process of its own. */
void daemon_run(void);
int gloveboxd_main(int argc, char **argv);
extern struct service *sim_service;

/* --- verify.c --------------------------------------------------------------------------------- */

/* After the last daemon: the log is whole, and has one receipt for each run. */
void verify_log(void);
