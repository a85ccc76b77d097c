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

#include "base/bytes.h"
#include "policy/precheck.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECK_FINDINGS_MAX = 100, CHECK_SUBJECT_SIZE = 80 };

struct check_finding {
    enum check_rule rule;
    enum check_decision decision;     /* by the policy */
    uint32_t line, column;            /* from 1; 0: the whole of it */
    bool is_import;                   /* `subject` is a module */
    char subject[CHECK_SUBJECT_SIZE]; /* "ctypes", "os.system": printable ASCII, never a text of
                                         the code's own (a receipt does not show it) */
};

/* What a run has that was checked; run->checks, NULL where nothing was to be checked. */
struct check_outcome {
    enum check_decision decision; /* the strictest of all */
    size_t count;                 /* of findings that are not simply allowed, by line */
    struct check_finding findings[CHECK_FINDINGS_MAX];
    uint64_t unlisted; /* findings beyond those */
    int64_t took_ms;
    char failure[200]; /* why the checker itself gave no answer; "": it did */
};

struct denials;
struct run;
struct run_request;

/* True if the policy of this run wants a look at it first. */
bool check_is_wanted(const struct run *run);

/* Begins it, of the code in `given`, which is borrowed until it ends or is abandoned. `told` is
 * called once, later or at once, when there is an outcome: in run->checks, NULL if there was no
 * memory for one; check_decision_of() says what it comes to in any case. */
typedef void check_told(struct run *run);
void check_begin(struct run *run, const struct run_request *given, bool is_cell, check_told *told);
enum check_decision check_decision_of(const struct run *run);

/* Reads what a checker has said, which is changed by it; what it found is added to `outcome`.
 * Returns whether all of it is sound, and whole: a checker that has found more than it may tell has
 * not been heard. */
bool check_read_answer(char *text, const struct precheck *precheck, struct check_outcome *outcome);

/* Nobody waits for it any more. Does nothing if it has ended, or never began. */
void check_abandon(struct run *run);

/* What was refused, as denials of the layer "precheck". */
void check_refuse(const struct run *run, struct denials *denials);

/* One line of words: "line 3 starts other programs: os.system". */
void check_finding_write(const struct check_finding *finding, char *text, size_t size);

/* The field `checks` of results: null without an outcome. */
void check_write(const struct check_outcome *outcome, struct bytes *out);
