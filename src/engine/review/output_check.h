/* output_check.h - checks that a run's output is as expected (expect.h).
 *
 * A program of ours compares them in a sandbox of its own, after the run has ended and returned its
 * sandbox (helper_run.h). The request, the policy or both may expect something; both must hold.
 * Only an explicit answer of that program is a pass: if it crashes, exceeds its time or memory, or
 * prints anything else, the verdict is `error`. The caller gets the output in any case, with the
 * verdict beside it, unless the policy withholds output that has not passed (output_withhold.c).
 *
 *     … collecting --> gating --> done */
#pragma once

#include "engine/run/output_findings.h"

/* Gives  run->gate, if the request or the policy expects something. Fails  ERR_BAD_REQUEST  the
 * policy expects what such a run does not have; ERR_UNAVAILABLE  no template here has Python, which
 * the checker needs */
int output_check_prepare(struct run *run, const struct run_request *request, error *err);
void output_check_free(struct run *run);

/* Starts the check. `told` is called once, later or at once; the outcome is in run->gate. */
void output_check_begin(struct run *run, output_check_told *told);

/* Stops waiting: a check that has not ended is an error. Does nothing if it has ended. */
void output_check_close(struct run *run);

/* output_check_verdict.c: reads the checker's answer, which is changed by it. Returns whether it is
 * complete and well-formed. `counts` has the numbers of artifacts, and of expected artifacts. */
bool output_check_read_answer(char *text, const uint32_t counts[2],
                              struct output_check_outcome *outcome);

/* The field `gate` of results: null if nothing is expected. */
void output_check_write(const struct run *run, struct bytes *out);
