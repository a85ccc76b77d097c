/* checks.h - the look at code before it runs, for policies that ask for one (model/precheck.h).
 *
 * Our checker runs as code of our own in a sandbox of its own, and reads the text that is to be
 * checked as a file: gloveboxd parses nothing of it. What the checker says is bounded and believed
 * as little as any other sandbox. A checker that crashes, takes too long or says anything else than
 * findings denies. It is a lint: the sandbox is the boundary.
 *
 *     run (or cell): checking --> queued …      (allow, warn; ask once it has been approved)
 *                        +------> done, denied  (deny; nothing has run) */
#pragma once

#include "daemon/bytes.h"
#include "model/precheck.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { CHECK_FINDINGS_MOST = 100, CHECK_SUBJECT_SIZE = 80 };

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
    struct check_finding findings[CHECK_FINDINGS_MOST];
    uint64_t unlisted; /* findings beyond those */
    char failure[200]; /* why the checker itself gave no answer; "": it did */
};

struct run;

/* True if the policy of this run wants a look at it first. */
bool check_is_wanted(const struct run *run);

/* Begins it. `told` is called once, later or at once, when run->checks is there.
 * Fails  ERR_SYSTEM  no memory, ERR_UNAVAILABLE: the run must not go on. */
typedef void check_told(struct run *run);
int check_begin(struct run *run, check_told *told, error *err);

/* Nobody waits for it any more. Does nothing if it has ended, or never began. */
void check_abandon(struct run *run);

/* One line of words: "line 3: ctypes calls native code …". */
void check_finding_write(const struct check_finding *finding, char *text, size_t size);

/* The value of `checks` in results: null without an outcome. */
void check_write(const struct check_outcome *outcome, struct bytes *out);
