/* outcome.h - derives how a run ended from evidence that no program inside can forge. */
#pragma once

#include "model/limits.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The names in JSON are these words in small letters: outcome_status_name(). */
enum run_status {
    RUN_OK,
    RUN_ERROR, /* the program failed by itself */
    RUN_LIMIT, /* it failed because a limit was reached */
    RUN_DENIED,
    RUN_PENDING_APPROVAL,
    RUN_CANCELLED,
    RUN_LOST, /* the sandbox ended by a failure of glovebox; the program's end is unknown */
    RUN_STATUSES
};

/* What caused a failure. */
enum run_fault {
    FAULT_NONE,
    FAULT_CODE,
    FAULT_LIMIT,
    FAULT_POLICY,
    FAULT_CALLER,
    FAULT_GLOVEBOX,
    FAULTS
};

/* The origin of a run's sandbox: `usage.start` of its result. */
enum run_start { START_BUILT, START_PARKED, START_SESSION, START_KINDS };

/* The verdict of the output check (`gate` of its result). */
enum output_check_verdict {
    OUTPUT_CHECK_ERROR,
    OUTPUT_CHECK_FAILED,
    OUTPUT_CHECK_PASSED,
    OUTPUT_CHECK_VERDICTS
};

/* The facts when a run is over. Zero-fill it, then call evidence_init(). */
struct evidence {
    bool denied;               /* refused before it began */
    bool pending;              /* waits for a person's decision */
    bool lost;                 /* the sandbox or the daemon ended unexpectedly */
    bool cancelled;            /* the caller has cancelled it */
    enum limit_id stopped_for; /* the limit for which gloveboxd ended it; LIMITS: none. Of this and
                                  `cancelled`, only the first that happened is set */
    bool ends_by_kill;         /* it is ended by SIGKILL, so an exit code of 0 is from before */
    bool exited;               /* exit_code and signal are known */
    int32_t exit_code;         /* -1 if a signal ended it */
    int32_t signal;            /* 0 if it ended by itself */
    uint64_t hits[LIMITS]; /* how often each limit was reached: oom kills, pids.events max, cuts */
};

void evidence_init(struct evidence *evidence);

struct verdict {
    enum run_status status;
    enum run_fault fault;
    enum limit_id limit; /* which limit ended it, with RUN_LIMIT; else LIMITS */
};

/* Derives the verdict. A program that exits with 0 although it reached a limit is RUN_OK (its hits
 * are reported), and so is one that ended just before it would have been stopped for its time. A
 * failure with evidence of a limit is RUN_LIMIT, with the first of output, wall, cpu, memory,
 * processes, disk, inodes, artifacts. */
struct verdict outcome_judge(const struct evidence *evidence);

/* Lists the limits with hits, in the order above, others last.
 * Returns how many of ret_hits are filled. */
size_t outcome_hits(const struct evidence *evidence, enum limit_id ret_hits[LIMITS]);

const char *outcome_status_name(enum run_status status); /* "ok", "pending_approval" */
const char *outcome_fault_name(enum run_fault fault);    /* "code"; NULL for FAULT_NONE */
