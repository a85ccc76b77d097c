/* cgroup_counters.h - what the kernel counted for one sandbox, read from its control groups; and
 * memory and processes as glovebox-init has seen them, where no group counts them.
 *
 * A verdict stands on these numbers and never on an exit code: no program inside can forge them. */
#pragma once

#include "contract/agent.h"
#include "contract/spawn.h"
#include "ledger/facts.h"

#include <stdbool.h>
#include <stdint.h>

struct counters {
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t memory_kills; /* processes that the kernel ended because memory was used up */
    uint64_t
        memory_full; /* times that the limit was met (also by file cache that was then dropped) */
    uint64_t processes_peak;
    uint64_t processes_refused;
    uint64_t throttled;
    uint64_t throttled_us;
    unsigned char sources[8]; /* of each of them: which file it came from; 0: none was there */
};

enum { COUNTERS_MAX = 8 };

/* Directories of one sandbox's groups by kind, -1 where there is none. */
enum { COUNTER_ROWS = 20 };
struct group_directories {
    int fd[GROUPS];
    bool is_held;
    struct agent_used watched; /* what init has seen, where no group counts it */
    int held[COUNTER_ROWS]; /* the file of each row, -1: not open; rows that share a file have it in
                               the first of them */
};

void group_directories_init(struct group_directories *groups);

/* Opens what counters_read() will read: to open a file costs several times what reading it costs,
 * and a request waits. For the few sandboxes that are taken next. */
void group_directories_hold(struct group_directories *groups);
void group_directories_done(struct group_directories *groups);

/* Reads everything that can be read; a counter that this machine does not keep stays 0. */
void counters_read(const struct group_directories *groups, struct counters *ret_counters);

/* What of these two no group counts, so that init has to watch it; zeros: nothing. */
struct agent_bound counters_missing(const struct group_directories *groups, uint64_t memory_bytes,
                                    uint64_t processes);

/* The processor time alone: what the limit on it polls. */
uint64_t counters_cpu_us(const struct group_directories *groups);

/* Whether what is in the group stands still; FREEZER_NONE: this machine cannot see to that. */
enum freezer { FREEZER_NONE, FREEZER_THAWED, FREEZER_FROZEN };
enum freezer counters_freezer(const struct group_directories *groups);

/* How many processes are alive in it now; 0 too where this cannot be known. */
uint64_t counters_processes(const struct group_directories *groups);

/* How many processes are in it, for a receipt. False where this cannot be known. */
bool counters_count(const struct group_directories *groups, uint64_t *ret_count);

/* Every counter that could be read, with the file behind it. Returns how many. */
size_t counters_evidence(const struct counters *counters, struct fact_counter ret[COUNTERS_MAX]);

/* What was added since `start`; the two peaks are taken as they are. */
void counters_subtract(struct counters *counters, const struct counters *start);
