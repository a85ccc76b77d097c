/* facts.h - the facts in a receipt of one execution, as plain values. Code that executes something
 * (a run, a cell of a session, a command in it) fills this and calls receipt_write()
 * (engine/audit/audit_log.h).
 *
 * Zero-fill it and set what you know: other members are written as null or an empty list. A receipt
 * has commitments to hashes of inputs and outputs, never their bytes; and names of environment
 * variables, never their values. All pointers are borrowed for the call. */
#pragma once

#include "model/client_claim.h"
#include "model/limits.h"
#include "model/outcome.h"

#include "ledger/opening.h"
#include "ledger/sha256.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Something with a name, bytes and a hash: an input or an artifact. */
struct fact_file {
    const char *name; /* "code", "command", "stdin", or a path beneath /workspace */
    uint64_t bytes;
    char sha256[SHA256_TEXT_SIZE];
};

struct fact_output {
    uint64_t bytes;                /* printed by the program */
    uint64_t kept;                 /* kept of them: all, or head and tail */
    char sha256[SHA256_TEXT_SIZE]; /* of the kept bytes, without the marker between */
};

struct fact_denial {
    const char *layer, *target;
    uint64_t count;
};

/* An outgoing connection, or a refused one; never the query of its URL. */
struct fact_connection {
    const char *host, *decision;                         /* "allow", "deny" */
    const char *rule, *reason, *address, *method, *path; /* NULL: none */
    uint64_t port, status, sent, received;
    bool intercepted; /* its TLS was intercepted: method and path are those inside */
    int64_t began_ms; /* since 1970 */
};

/* A finding of the pre-execution check; never the code itself. */
struct fact_check {
    const char *rule, *decision;
    uint32_t line; /* 0: all of it */
};

/* Where an output did not meet its expectation; never the text of either. */
struct fact_gate {
    const char *rule, *where; /* "secret", "artifact" */
    uint32_t line;            /* 0: all of it */
};

/* A counter of the kernel, and the control group and file that it was read from. */
struct fact_counter {
    const char *name, *group, *file;
    uint64_t value;
};

struct fact_named {
    const char *name, *digest;
};

/* Facts that are the same for every execution of this daemon. */
struct fact_place {
    const char *version;      /* of glovebox */
    const char *kernel;       /* "6.1.0-18-amd64 x86_64" */
    struct fact_named filter; /* the seccomp table that was loaded */
    struct fact_named loopback_filter;
    const char *self_test;     /* sha256 of `glovebox doctor`'s last report here; NULL: none */
    int64_t self_test_at_ms;   /* since 1970 */
    uint64_t self_test_failed; /* walls that failed it */
    struct statement_memory *memory; /* a cache of unchanged parts; NULL: none */
};

struct receipt_facts {
    const struct opening_key *nonce; /* for commitments; opening.h */
    const char *sealed;              /* what is hidden of its withheld output; NULL: nothing */
    bool is_minimal;  /* lists have only their number of rows, so that it fits into a record */
    const char *id;   /* "run_…": of the execution, not of the receipt */
    const char *kind; /* "run", "cell", "command", "check": checked, not executed */
    const char *language, *session, *context, *approval;
    const struct client_claim *claim; /* NULL: none */
    const char *start;                /* "parked", "built", "session" */
    const char *key, *tenant;         /* ids of the caller, never the key itself */

    struct fact_named policy, template;
    uint64_t walls, degraded; /* bits of enum wall */

    int64_t submitted_ms, started_ms, ended_ms; /* since 1970; 0: did not happen */

    size_t input_count, artifact_count, denial_count, counter_count, variable_count;
    const struct fact_file *inputs, *artifacts;
    const struct fact_denial *denials;
    size_t connection_count;
    uint64_t connections_unlisted; /* further ones, of which only the number is known */
    const struct fact_connection *connections;
    const char *check_decision; /* NULL: the policy has no check */
    size_t check_count;
    uint64_t checks_unlisted;
    const struct fact_check *checks;
    const char *output_check_verdict;     /* NULL: there was no expectation of its output */
    const char *output_check_expectation; /* sha256 of the expectation in canonical JSON */
    size_t output_check_count;
    uint64_t output_check_unlisted;
    bool output_check_withheld; /* the output was not given to the caller */
    const struct fact_gate *output_check;
    const struct fact_counter *counters;
    const char *const *variables; /* names */
    struct fact_output output[2]; /* stdout, stderr */
    struct fact_file results;     /* of a cell: its shown results; sha256 "" for none */

    struct verdict verdict;
    bool exited;
    int32_t exit_code, signal;
    struct limits granted;
    uint64_t used[LIMITS];
    uint64_t hits[LIMITS];

    bool was_stopped;         /* glovebox-init reported that nothing runs any more */
    bool leftovers_are_known; /* the kernel's count could be read */
    uint64_t leftovers;       /* processes in its control group after its files were collected */
};
