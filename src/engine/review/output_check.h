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

#include "base/bytes.h"
#include "engine/store/blobs.h"
#include "ledger/facts.h"
#include "policy/expect.h"

#include <stdbool.h>
#include <stdint.h>

enum gate_rule {
#define GATE(name, text) GATE_##name,
#include "policy/output_rules.def"
    GATE_RULES
};

enum gate_verdict { GATE_ERROR, GATE_FAILED, GATE_PASSED, GATE_VERDICTS };

enum gate_place {
    PLACE_STDOUT,
    PLACE_STDERR,
    PLACE_RESULT,
    PLACE_ERROR,     /* the exception that ended the code */
    PLACE_ARTIFACTS, /* the list of them, and their names */
    PLACE_ARTIFACT,  /* one of them: `index` */
    PLACE_EXPECTED,  /* what is expected of an artifact, and none is so: `index` */
    PLACES
};

enum { GATE_FINDINGS_MOST = 100, GATE_DETAIL_SIZE = 120 };

struct gate_finding {
    enum gate_rule rule;
    enum gate_place place;
    uint32_t index;
    uint32_t line;                 /* from 1; 0: the whole of it */
    char detail[GATE_DETAIL_SIZE]; /* printable ASCII: sizes, words of the expectation, names of
                                      patterns; never a piece of the output */
};

struct gate_outcome {
    enum gate_verdict verdict;
    size_t count;
    struct gate_finding findings[GATE_FINDINGS_MOST];
    uint64_t unlisted; /* findings beyond those */
    int64_t took_ms;
    char failure[200]; /* with GATE_ERROR: why there is no other verdict */
};

struct aside;
struct run;
struct policy;
struct run_request;

/* What a run has that something is expected of; run->gate, else NULL. */
struct gate {
    struct json_object *expects; /* a list: those of the policy, then that of the request */
    struct expect_needs needs;
    char sha256[SHA256_TEXT_SIZE]; /* of the expectation in canonical JSON; of several, of the list
                                    */
    bool withholds;                /* the policy does, until it has passed */
    bool is_released;              /* and it has */
    char owner[BLOB_OWNER_SIZE];   /* of its artifacts till then: nobody */
    struct run_spec *place;        /* where the checker runs */
    struct aside *aside;           /* while it does */
    struct gate_files *files;      /* that it is given */
    bool has_begun, has_ended;
    struct gate_hold *hold; /* its answer waits */
    struct gate_outcome outcome;
};

/* Whether what the policy expects can be found out of a session's cells.
 * Fails  ERR_BAD_REQUEST  it expects artifacts, and they leave none */
int gate_allows_session(const struct policy *policy, error *err);

/* What leaves a session beside the results of its cells is compared by nobody: `what` of it.
 * Fails  ERR_POLICY  the policy withholds what has not been compared */
int gate_lets_out(const struct policy *policy, const char *what, error *err);

/* Is anything expected of such a run? */
bool gate_is_wanted(const struct policy *policy, const struct run_request *request);

/* Gives  run->gate, if the request or the policy expects something.
 * Fails  ERR_BAD_REQUEST  the policy expects what such a run does not have
 *        ERR_UNAVAILABLE  no template here has Python, which compares */
int gate_prepare(struct run *run, const struct run_request *request, error *err);
void gate_free(struct run *run);

/* There is an output, and nobody has looked at it yet. */
bool gate_is_due(const struct run *run);

/* Begins. `told` is called once, later or at once; the outcome stands in run->gate. */
typedef void gate_told(struct run *run);
void gate_begin(struct run *run, gate_told *told);

/* Nothing is to be waited for: what is not known by now is an error. Does nothing if it is over. */
void gate_close(struct run *run);

/* output_withhold.c: may its output be told? Not before it has passed, where the policy says so. */
bool gate_holds(const struct run *run);
struct blob_owner gate_owner(const struct run *run); /* whose its artifacts are */
/* There is a verdict: artifacts become the caller's, or nobody's for good. */
void gate_settle(struct run *run);
bool gate_has_withheld(const struct run *run);
/* What was withheld is not said in any other way: takes from the run what the program has a say in.
 */
void gate_blank(struct run *run);
/* When a run is answered whose output is withheld says nothing of it: `told` is called at a moment
 * that was fixed when it began. Returns  false if there is nothing to wait for. */
bool gate_hold(struct run *run, gate_told *told);
void gate_hold_end(struct gate *gate);
void gate_print_withheld(const struct run *run, char *text, size_t size); /* 400 bytes do */

/* output_check_verdict.c: there is no verdict, and why. */
void gate_give_up(struct gate_outcome *outcome, const char *why);

/* Reads what the checker has said, which is changed by it. Returns whether it is sound and whole.
 * `counts` has how many artifacts there are, and how many are expected. */
bool gate_read_answer(char *text, const uint32_t counts[2], struct gate_outcome *outcome);

/* The field `gate` of results: null without an expectation. */
void gate_write(const struct run *run, struct bytes *out);

const char *gate_verdict_name(enum gate_verdict verdict);
const char *gate_rule_name(enum gate_rule rule);
const char *gate_rule_text(enum gate_rule rule);
const char *gate_place_name(enum gate_place place);
