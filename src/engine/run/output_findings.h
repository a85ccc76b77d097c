/* output_findings.h - what is expected of the output of a run, and findings in it, as plain data
 * (engine/review/output_check.h compares them); whether the output is reported
 * (output_withhold.c). */
#pragma once

#include "engine/store/blobs.h"
#include "ledger/facts.h"
#include "model/outcome.h"
#include "policy/expect.h"

#include <stdbool.h>
#include <stdint.h>

enum output_check_rule {
#define GATE(name, text) OUTPUT_CHECK_##name,
#include "policy/output_rules.def"
    OUTPUT_CHECK_RULES
};

enum output_check_place {
    PLACE_STDOUT,
    PLACE_STDERR,
    PLACE_RESULT,
    PLACE_ERROR,     /* the exception that ended the code */
    PLACE_ARTIFACTS, /* their list and names */
    PLACE_ARTIFACT,  /* one artifact: `index` */
    PLACE_EXPECTED,  /* an expectation that no artifact meets: `index` */
    PLACES
};

enum { OUTPUT_CHECK_FINDINGS_MAX = 100, OUTPUT_CHECK_DETAIL_SIZE = 120 };

struct output_check_finding {
    enum output_check_rule rule;
    enum output_check_place place;
    uint32_t index;
    uint32_t line;                         /* from 1; 0: the whole output */
    char detail[OUTPUT_CHECK_DETAIL_SIZE]; /* printable ASCII: sizes, words of the expectation,
                                      names of patterns; never a piece of the output */
};

struct output_check_outcome {
    enum output_check_verdict verdict;
    size_t count;
    struct output_check_finding findings[OUTPUT_CHECK_FINDINGS_MAX];
    uint64_t unlisted; /* how many more findings there are */
    int64_t took_ms;
    char failure[200]; /* with OUTPUT_CHECK_ERROR: why there is no other verdict */
};

struct helper_run;
struct run;
struct policy;
struct run_request;

struct output_check_files;
struct output_check_hold;

/* What a run has if something is expected of its output; run->gate, else NULL. */
struct output_check {
    struct json_object *expects; /* a list: of the policy, then of the request */
    struct expect_needs needs;
    char sha256[SHA256_TEXT_SIZE];    /* of the expectations in canonical JSON */
    bool withholds;                   /* by policy, until the check has passed */
    bool is_released;                 /* the check has passed */
    char owner[BLOB_OWNER_SIZE];      /* of its artifacts until then: "" */
    struct run_spec *place;           /* the template and policy of the checker */
    struct helper_run *helper_run;    /* the checker while it runs */
    struct output_check_files *files; /* its inputs */
    bool has_begun, has_ended;
    struct output_check_hold *hold; /* delays the answer */
    struct output_check_outcome outcome;
};

/* Is anything expected of such a run? */
bool output_check_is_wanted(const struct policy *policy, const struct run_request *request);

/* True if there is output that was not compared yet. */
bool output_check_is_due(const struct run *run);

typedef void output_check_told(struct run *run);

/* output_withhold.c: may the output be reported? If the policy withholds it, only after it has
 * passed. */
bool output_check_holds(const struct run *run);
struct blob_owner output_check_owner(const struct run *run); /* of its artifacts */
/* The verdict is known: artifacts become the caller's, or stay without an owner. */
void output_check_settle(struct run *run);
bool output_check_has_withheld(const struct run *run);
/* Clears the fields of a withheld run that the program could use to signal its output. */
void output_check_blank(struct run *run);
/* The time of the answer must not depend on output that is withheld: `told` is called at a moment
 * that was fixed when the run began. Returns  false if there is nothing to wait for. */
bool output_check_hold(struct run *run, output_check_told *told);
void output_check_hold_end(struct output_check *output_check);
/* Needs 400 bytes. */
void output_check_print_withheld(const struct run *run, char *text, size_t size);

/* Sets OUTPUT_CHECK_ERROR with its cause. */
void output_check_give_up(struct output_check_outcome *outcome, const char *why);

const char *output_check_verdict_name(enum output_check_verdict verdict);
const char *output_check_rule_name(enum output_check_rule rule);
const char *output_check_rule_text(enum output_check_rule rule);
const char *output_check_place_name(enum output_check_place place);
