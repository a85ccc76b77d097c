/* precheck.h - the check of code before it runs, for policies that want one (policy/precheck.h).
 *
 * Our checker runs in a sandbox of its own and reads the code as a file: gloveboxd parses none of
 * it. The checker's answer is bounded, and checked like that of any sandbox. If it crashes, takes
 * too long or prints anything but findings, the run is denied. It is a lint: the sandbox is the
 * boundary.
 *
 *     run (or cell): checking --> queued …      (allow, warn; ask once it has been approved)
 *                        +------> done, denied  (deny; nothing has run) */
#pragma once

#include "engine/run/check_findings.h"

#include <stdbool.h>

struct run_request;

/* Starts the check of the code in `given`, which is borrowed until it ends or is abandoned. `told`
 * is called once, later or at once. The outcome is in run->checks, NULL if memory ran out;
 * check_decision_of() gives the decision in both cases. */
void check_begin(struct run *run, const struct run_request *given, bool is_cell,
                 void (*told)(struct run *run));
/* Reads a checker's answer, which is changed by it, and adds the findings to `outcome`. Returns
 * whether it is complete and well-formed: one with more findings than allowed is not. */
bool check_read_answer(char *text, const struct precheck *precheck, struct check_outcome *outcome);

/* The result is not needed any more. Does nothing if the check has ended, or never began. */
void check_abandon(struct run *run);
