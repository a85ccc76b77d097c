/* output_findings.h - what was expected of the output of a run, and what was found in it, as plain
 * data (engine/review/output_check.h compares it); whether it is reported (output_withhold.c). */
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
    PLACE_ARTIFACTS, /* the list of them, and their names */
    PLACE_ARTIFACT,  /* one of them: `index` */
    PLACE_EXPECTED,  /* what is expected of an artifact, and none is so: `index` */
    PLACES
};

enum { OUTPUT_CHECK_FINDINGS_MAX = 100, OUTPUT_CHECK_DETAIL_SIZE = 120 };

struct output_check_finding {
    enum output_check_rule rule;
    enum output_check_place place;
    uint32_t index;
    uint32_t line;                         /* from 1; 0: the whole of it */
    char detail[OUTPUT_CHECK_DETAIL_SIZE]; /* printable ASCII: sizes, words of the expectation,
                                      names of patterns; never a piece of the output */
};

struct output_check_outcome {
    enum output_check_verdict verdict;
    size_t count;
    struct output_check_finding findings[OUTPUT_CHECK_FINDINGS_MAX];
    uint64_t unlisted; /* findings beyond those */
    int64_t took_ms;
    char failure[200]; /* with OUTPUT_CHECK_ERROR: why there is no other verdict */
};

struct helper_run;
struct run;
struct policy;
struct run_request;

struct output_check_files;
struct output_check_hold;

/* What a run has that something is expected of; run->gate, else NULL. */
struct output_check {
    struct json_object *expects; /* a list: those of the policy, then that of the request */
    struct expect_needs needs;
    char sha256[SHA256_TEXT_SIZE]; /* of the expectation in canonical JSON; of several, of a list */
    bool withholds;                /* the policy does, until it has passed */
    bool is_released;              /* and it has */
    char owner[BLOB_OWNER_SIZE];   /* of its artifacts till then: none */
    struct run_spec *place;        /* where the checker runs */
    struct helper_run *helper_run; /* while it does */
    struct output_check_files *files; /* that it is given */
    bool has_begun, has_ended;
    struct output_check_hold *hold; /* its answer waits */
    struct output_check_outcome outcome;
};

/* Is anything expected of such a run? */
bool output_check_is_wanted(const struct policy *policy, const struct run_request *request);

/* There is an output, which was not compared yet. */
bool output_check_is_due(const struct run *run);

typedef void output_check_told(struct run *run);

/* output_withhold.c: may its output be reported? Not before it has passed, where the policy says
 * so. */
bool output_check_holds(const struct run *run);
struct blob_owner output_check_owner(const struct run *run); /* whose its artifacts are */
/* There is a verdict: artifacts become the caller's, or stay without an owner. */
void output_check_settle(struct run *run);
bool output_check_has_withheld(const struct run *run);
/* What was withheld is not said in another way: takes from the run what the program decides. */
void output_check_blank(struct run *run);
/* When a run is answered whose output is withheld says nothing of it: `told` is called at a moment
 * that was fixed when it began. Returns  false if there is nothing to wait for. */
bool output_check_hold(struct run *run, output_check_told *told);
void output_check_hold_end(struct output_check *output_check);
void output_check_print_withheld(const struct run *run, char *text, size_t size); /* 400 bytes do */

/* There is no verdict, and why. */
void output_check_give_up(struct output_check_outcome *outcome, const char *why);

const char *output_check_verdict_name(enum output_check_verdict verdict);
const char *output_check_rule_name(enum output_check_rule rule);
const char *output_check_rule_text(enum output_check_rule rule);
const char *output_check_place_name(enum output_check_place place);
