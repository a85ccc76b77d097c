/* output_check.h - the gate of outputs: is what a run has left what was expected of it (expect.h)?
 *
 * A program of ours compares them in a sandbox of its own, made for it, after the run has ended and
 * given its own sandbox back (helper_run.h). What is expected stands in the request, in the policy,
 * or in both, and then both hold. Passed is only what that program has said in so many words: a
 * checker that crashes, is out of time or memory, or says anything else, gives the verdict `error`,
 * which is no pass. The output is handed over in any case, with the verdict beside it, unless the
 * policy withholds what has not passed (output_withhold.c).
 *
 *     … collecting --> gating --> done */
#pragma once

#include "engine/run/output_findings.h"

/* Gives  run->gate, if the request or the policy expects something.
 * Fails  ERR_BAD_REQUEST  the policy expects what such a run does not have
 *        ERR_UNAVAILABLE  no template here has Python, which compares */
int output_check_prepare(struct run *run, const struct run_request *request, error *err);
void output_check_free(struct run *run);

/* Begins. `told` is called once, later or at once; the outcome stands in run->gate. */
void output_check_begin(struct run *run, output_check_told *told);

/* Nothing is to be waited for: what is not known by now is an error. Does nothing if it is over. */
void output_check_close(struct run *run);

/* output_check_verdict.c: reads what the checker has said, which is changed by it. Returns whether
 * it is sound and whole. `counts` has how many artifacts there are, and how many are expected. */
bool output_check_read_answer(char *text, const uint32_t counts[2],
                              struct output_check_outcome *outcome);

/* The field `gate` of results: null without an expectation. */
void output_check_write(const struct run *run, struct bytes *out);
