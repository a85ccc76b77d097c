/* check_findings.h - findings in the code of a run before it ran (engine/review/precheck.h), as
 * plain data, and how they are reported. */
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
    uint32_t line, column;            /* from 1; 0: the whole code */
    bool is_import;                   /* `subject` is a module */
    char subject[CHECK_SUBJECT_SIZE]; /* "ctypes", "os.system": printable ASCII, never text
                                         of the code, since receipts contain it */
};

/* The outcome for a run that was checked; run->checks, NULL if nothing was to be checked. */
struct check_outcome {
    enum check_decision decision; /* the strictest of all */
    size_t count;                 /* of findings that are not allowed, sorted by line */
    struct check_finding findings[CHECK_FINDINGS_MAX];
    uint64_t unlisted; /* how many more findings there are */
    int64_t took_ms;
    char failure[200]; /* why the checker gave no answer; "": it gave one */
};

/* True if the policy of this run wants its code checked first. */
bool check_is_wanted(const struct run *run);

enum check_decision check_decision_of(const struct run *run);

/* Adds what was refused, as denials of the layer "precheck". */
void check_refuse(const struct run *run, struct denials *denials);

/* The field `checks` of results: null if there was no check. */
void check_write(const struct check_outcome *outcome, struct bytes *out);
