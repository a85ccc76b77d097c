/* helper_run.h - runs one of our own programs in another sandbox, on behalf of a run: the program
 * gets texts of a hostile program as files, and prints a few lines about them. It is a run like any
 * other (same queue, pool, limits, end), but only the run that waits for it can see it.
 *
 * Its output is checked like that of any sandbox. */
#pragma once

#include "base/error.h"
#include "engine/run/run_request.h"
#include "policy/policy.h"

#include <stddef.h>
#include <stdint.h>

struct helper_run;
struct run;
struct run_spec;

/* The outcome. Exactly one of `text` and `failure` is set. */
struct helper_run_answer {
    char *text;          /* all that it printed, without a NUL; may be changed */
    const char *failure; /* why there is no text: it did not end well */
    int64_t took_ms;
    uint64_t cpu_us;
};

/* Called once, unless the helper is abandoned before. */
typedef void helper_run_told(struct run *outer, const struct helper_run_answer *answer);

struct helper_run_order {
    const struct run_spec *place;     /* the template, and the policy for such programs */
    const char *runs_as;              /* the language of the program */
    const char *const *parts;         /* NULL-ended: the text of the program */
    const struct request_file *files; /* their contents are borrowed until it has ended */
    size_t file_count;
    const char *arguments[2];
    helper_run_told *told;
};

/* Gives *ret_helper_run, which frees itself after the call, or when it is abandoned. */
int helper_run_begin(struct run *outer, const struct helper_run_order *order,
                     struct helper_run **ret_helper_run, error *err);

/* Its result is not needed any more. NULL is accepted. */
void helper_run_abandon(struct helper_run *helper_run);

/* The policy of such programs: fixed bounds, whatever the code's own policy says, no network, no
 * files kept. The caller may change it. */
void helper_run_policy_init(struct policy *policy, const char *name);
