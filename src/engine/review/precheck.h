/* precheck.h - the look at code before it runs, for policies that ask for one (policy/precheck.h).
 *
 * Our checker runs as code of our own in a sandbox of its own, and reads the text that is to be
 * checked as a file: gloveboxd parses nothing of it. What the checker says is bounded and believed
 * as little as any other sandbox. A checker that crashes, takes too long or says anything else than
 * findings denies. It is a lint: the sandbox is the boundary.
 *
 *     run (or cell): checking --> queued …      (allow, warn; ask once it has been approved)
 *                        +------> done, denied  (deny; nothing has run) */
#pragma once

#include "engine/run/check_findings.h"

#include <stdbool.h>

struct run;
struct run_request;

/* Begins it, of the code in `given`, which is borrowed until it ends or is abandoned. `told` is
 * called once, later or at once, when there is an outcome: in run->checks, NULL if there was no
 * memory for one; check_decision_of() says what it comes to in any case. */
void check_begin(struct run *run, const struct run_request *given, bool is_cell,
                 void (*told)(struct run *run));
/* Reads what a checker has said, which is changed by it; what it found is added to `outcome`.
 * Returns whether all of it is sound, and whole: a checker that has found more than it may tell has
 * not been heard. */
bool check_read_answer(char *text, const struct precheck *precheck, struct check_outcome *outcome);

/* Its result is not needed any more. Does nothing if it has ended, or never began. */
void check_abandon(struct run *run);
