/* cgroup_counters.h - counters of one sandbox, read from its control groups; memory and processes
 * as glovebox-init has seen them if no group counts them.
 *
 * Verdicts rely on these numbers and never on an exit code: no program inside can forge them. */
#pragma once

#include "contract/agent.h"
#include "contract/spawn.h"
#include "ledger/facts.h"

#include <stdbool.h>
#include <stdint.h>

struct counters {
    uint64_t cpu_us;
    uint64_t memory_peak_bytes;
    uint64_t memory_kills; /* processes that the kernel killed because memory was used up */
    uint64_t memory_full; /* how often the limit was reached, also by file cache that was dropped */
    uint64_t processes_peak;
    uint64_t processes_refused;
    uint64_t throttled;
    uint64_t throttled_us;
    unsigned char sources[8]; /* the file that each came from; 0: there was none */
};

enum { COUNTERS_MAX = 8 };

/* Directories of one sandbox's groups by kind, -1: none. */
enum { COUNTER_ROWS = 20 };
struct group_directories {
    int fd[GROUPS];
    bool is_held;
    struct agent_used watched; /* counted by init, where no group does */
    int held[COUNTER_ROWS]; /* the open file of each row, -1: none; of rows that share a file only
                               the first has it */
};

void group_directories_init(struct group_directories *groups);

/* Opens the files for counters_read(), for the few sandboxes that are taken next: opening a file
 * costs several times as much as reading it, and a request would wait. */
void group_directories_hold(struct group_directories *groups);
void group_directories_done(struct group_directories *groups);

/* Reads all counters that this machine has; others are 0. */
void counters_read(const struct group_directories *groups, struct counters *ret_counters);

/* Which of these two init must watch since no group counts it; zeros: none. */
struct agent_bound counters_missing(const struct group_directories *groups, uint64_t memory_bytes,
                                    uint64_t processes);

/* Only the processor time: its limit is polled. */
uint64_t counters_cpu_us(const struct group_directories *groups);

/* The processor time of all sandboxes of its tenant, since the tenant's group was made; 0 also if
 * that is unknown. */
uint64_t counters_tenant_cpu_us(const struct group_directories *groups);

/* Whether the processes in the group are frozen; FREEZER_NONE: this machine has no freezer. */
enum freezer { FREEZER_NONE, FREEZER_THAWED, FREEZER_FROZEN };
enum freezer counters_freezer(const struct group_directories *groups);

/* How many processes are alive now; 0 also if that is unknown. */
uint64_t counters_processes(const struct group_directories *groups);

/* How many processes are in it, for a receipt. False if that is unknown. */
bool counters_count(const struct group_directories *groups, uint64_t *ret_count);

/* Every counter that could be read, with its file. Returns how many. */
size_t counters_evidence(const struct counters *counters, struct fact_counter ret[COUNTERS_MAX]);

/* The increase since `start`; the two peaks are copied. */
void counters_subtract(struct counters *counters, const struct counters *start);
