/* check_findings.h - what was found in the code of a run before it ran (engine/review/precheck.h),
 * as plain data, and how it is reported. */
#pragma once

#include "base/bytes.h"
#include "policy/precheck.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct denials;
struct run;

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

/* True if the policy of this run wants a look at it first. */
bool check_is_wanted(const struct run *run);

enum check_decision check_decision_of(const struct run *run);

/* What was refused, as denials of the layer "precheck". */
void check_refuse(const struct run *run, struct denials *denials);

/* The field `checks` of results: null without an outcome. */
void check_write(const struct check_outcome *outcome, struct bytes *out);
