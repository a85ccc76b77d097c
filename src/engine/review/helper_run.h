/* helper_run.h - a program of ours for a run, in another sandbox: it looks at texts of a hostile
 * program, which it is given as files, and says in a few lines what it has found. It is a run like
 * any other (same queue, pool, limits, end), which is known only to the run that waits for it.
 *
 * What it says is believed as little as any other sandbox's words are. */
#pragma once

#include "base/error.h"
#include "engine/run/run_request.h"
#include "policy/policy.h"

#include <stddef.h>
#include <stdint.h>

struct helper_run;
struct run;
struct run_spec;

/* What it came to. Exactly one of `text` and `failure` is there. */
struct helper_run_answer {
    char *text;          /* all that it printed, without a NUL in it; may be changed */
    const char *failure; /* why that is not to be believed: it did not end well */
    int64_t took_ms;
    uint64_t cpu_us;
};

/* Called once, unless it is abandoned before. */
typedef void helper_run_told(struct run *disk_worker, const struct helper_run_answer *answer);

struct helper_run_order {
    const struct run_spec *place;     /* in which template, and under which policy of ours */
    const char *runs_as;              /* the language of the program */
    const char *const *parts;         /* NULL-ended: its text */
    const struct request_file *files; /* whose contents are borrowed until it has ended */
    size_t file_count;
    const char *arguments[2];
    helper_run_told *told;
};

/* Gives  *ret_aside, which frees itself when it has told, or was abandoned. */
int helper_run_begin(struct run *disk_worker, const struct helper_run_order *order,
                     struct helper_run **ret_aside, error *err);

/* Its result is not needed any more. NULL is fine. */
void helper_run_abandon(struct helper_run *helper_run);

/* The policy of such programs: bounds that hold whatever the code's own policy says, no network,
 * nothing is kept. The caller sets what it wants otherwise. */
void helper_run_policy_init(struct policy *policy, const char *name);
