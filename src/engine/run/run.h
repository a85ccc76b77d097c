/* run.h - one run, for the parts of gloveboxd. Doors read it and change nothing. Its states are the
 * rows of run_states.def. */
#pragma once

#include "base/clock.h"
#include "engine/network/egress_client.h"
#include "engine/run/check_findings.h"
#include "engine/run/collector.h"
#include "engine/run/finalize.h"
#include "engine/run/output_findings.h"
#include "engine/run/queue.h"
#include "engine/run/run_kind.h"
#include "engine/run/run_plan.h"
#include "engine/run/run_stages.h"
#include "engine/sandbox/pool.h"
#include "engine/schedule/accounts.h"
#include "ledger/statement.h"
#include "model/outcome.h"

struct run {
    char id[RUN_ID_SIZE];
    const struct run_kind *kind;
    enum run_state state; /* written by run_set_state() only */
    struct runs *runs;
    struct account *account;     /* of the caller: accounts.h */
    int64_t charged_us;          /* fair_share_begins() */
    char request_id[65];         /* of the request for it; "": unknown */
    struct run_request *request; /* NULL once all inputs are sent */
    struct run_spec plan;
    struct collector collector;
    bool has_harvest;   /* output is kept until every listener has read it */
    bool is_detached;   /* and for a while after: run_detach() */
    uint64_t number;    /* ordinal of the run, for pages of their list */
    int64_t created_ms; /* wall clock */

    struct pool_ticket *pending_lease; /* while its sandbox is being built */
    struct sandbox *sandbox;
    enum run_start start;
    uint64_t walls, degraded;
    struct egress_route *route; /* to the network, if the policy allows; cells use the session's */
    struct connection_log connections; /* its connections, as reported */
    bool inputs_are_in, is_collected;
    struct disk_job writing;       /* the disk job for its files, while is_writing */
    bool is_writing, awaits_files; /* the run has ended, and the disk job has not */

    uv_timer_t timer; /* for the next of these deadlines */
    bool timer_is_open;
    deadline state_ends; /* at_ms 0: never */
    deadline wall_ends;
    deadline cpu_look;
    deadline look; /* when to call run_kind.look(), in this state */

    struct bytes certificates; /* for its programs to trust; empty unless TLS is intercepted */
    size_t next_input;         /* the input that is being sent, and the next byte of it */
    uint64_t input_offset;
    bool input_is_open, inputs_are_sent;
    bool collect_is_sent;
    bool is_judged;     /* run_settle() was called */
    bool is_concluding; /* init stops and collects by itself, once: AGENT_CONCLUDE */

    int64_t submitted_us, leased_us, started_us, ended_us, done_us;
    struct counters counters_before, counters;
    struct evidence evidence;
    struct verdict verdict;
    error fault;         /* why glovebox itself failed, if the run is lost */
    bool files_are_lost; /* the sandbox was killed before its files were read */

    bool check_only;          /* the code is checked and does not run */
    struct helper_run *check; /* under way: the run begins after it */
    void (*check_told)(struct run *run);
    struct check_outcome *checks;      /* its outcome */
    uint64_t checks_cpu_us;            /* of helper runs */
    struct output_check *output_check; /* what is expected of its output; NULL: nothing */
    struct finalize *finalize;         /* NULL: results are computed when they are needed */
    bool is_settled;                   /* finalize_begin() was called */
    bool has_left;                     /* runs_leave() was called */
    bool leftovers_are_known;          /* it returned its sandbox before it was done */
    uint64_t leftovers;
    bool is_checker;               /* for another run, and not visible to clients (precheck.c) */
    struct cell *cell;             /* what only a cell has (contexts.h); NULL: no cell */
    const char *session, *context; /* ids, for a cell; else NULL */
    const char *context_end;       /* why a cell's interpreter has ended; NULL: it runs */
    struct run_record *record;     /* for the receipt: its inputs */
    char approval[40];             /* that it waits for, was denied by, or runs under */
    char receipt[RECEIPT_ID_SIZE];
    struct run_listener *listeners;
    struct bytes result; /* JSON, when done */
    struct run *next_queued;
    struct run *older, *newer;
};

/* output_withhold.c: the state to report; a run whose output may be withheld reports its end only
 * with the answer. */
enum run_state run_state_shown(const struct run *run);

/* verdict.c: how it ended; called by run_conclude() unless it is needed before. */
void run_settle(struct run *run);

/* run.c */
int run_new(struct runs *runs, struct run_request *request, struct run **ret_run, error *err);
struct run *run_make(struct runs *runs); /* NULL: no memory */
void run_free(struct run *run);
/* A helper run for another run, as run_plan_grant_checker() plans it. Fails as run_new(). */
int run_new_checker(const struct run *outer, const struct run_spec *place,
                    struct run_request *request, struct run **ret_run, error *err);
void run_drop(struct run *run); /* as run_free(), if no client knows its id */
void run_release_buffers(
    struct run *run); /* frees all but the result, if it is done and has no listener */

/* run.c */
bool run_begin(struct run *run);  /* takes a sandbox; false: there is no room, it keeps waiting */
void run_reject(struct run *run); /* ends it as pending or denied, before anything runs */

/* Microseconds in the queue; its whole time if it never left the queue. */
int64_t run_queued_us(const struct run *run);

/* run_clock.c: the only function that writes the state of a run. */
void run_set_state(struct run *run, enum run_state next);
void run_bound_state(struct run *run);                   /* starts the deadline of the state */
void run_set_timer(struct run *run);                     /* after a change of a deadline */
void run_start_clock(struct run *run);                   /* when it begins to run */
void run_stop_for(struct run *run, enum limit_id limit); /* if it is running */

void run_notify(struct run *run);  /* calls its listeners */
void run_printed(struct run *run); /* likewise for output; ends a run that prints too much */

/* verdict.c: writes its files to the disk; frames of its sandbox are not read meanwhile. */
void run_write_files(struct run *run);

/* verdict.c: its code has ended, or never begins. Computes the verdict, writes receipt and result.
 * The run is done at once, or after its output was compared or finalized. */
void run_finish(struct run *run);

/* runs.c: adds the run to the list; a run has ended. */
void runs_list(struct runs *runs, struct run *run);
void runs_ended(struct runs *runs, struct run *run);
void runs_leave(struct run *run);   /* it needs no sandbox any more: the next run may begin */
void runs_enqueue(struct run *run); /* it waits in its account's queue */

/* inputs.c: sends inputs while there is room, and the caller flushes; sets inputs_are_sent. */
void run_load(struct run *run);
void run_start_program(struct run *run, uint32_t id); /* a compiler, or the program */
void run_send_stdin(struct run *run);                 /* to an interpreter that runs code */

/* receipt_facts.c: notes a run and its inputs before it begins; writes its receipt before the
 * answer. */
int run_note(struct run *run, const struct run_request *request, error *err);
int run_write_receipt(struct run *run, error *err);
/* Writes its beginning into the log, once: before it gets a network route, and before any output is
 * sent while it runs. All else is sent after the receipt. Fails  neither may happen. */
int run_tell_began(struct run *run, error *err);
/* For a run whose output is withheld: seals what is true now into its receipt, and keeps it out of
 * the open part. */
int run_seal(struct run *run, error *err);
const char *run_traceparent(const struct run *run); /* of its caller; "": none */
void run_record_free(struct run *run); /* removes the note, if no receipt was written */

/* SHA-256 of the code or the command, as in the receipt. */
void run_code_hash(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE]);

/* approval_stage.c: requests the approval that the policy wants. If the run is held afterwards,
 * run->evidence says pending or denied; else it may begin. Fails  it must not begin. */
int run_ask(struct run *run, const struct run_request *request, error *err);
bool run_is_held(const struct run *run);
/* The same for a run that was checked, with the findings. Returns whether it may begin. */
bool run_ask_checked(struct run *run, const struct run_request *request);

/* limit_report.c */
uint64_t run_used(const struct run *run, enum limit_id limit);
/* The field `limit`; `is_withheld`: the policy withholds output and files. */
void result_write_limit(const struct run *run, bool is_withheld, struct bytes *out);

/* result_document.c, by the rows of model/result_fields.def */

/* An error of glovebox itself, in the form of an exception of the code. */
void result_write_error(const char *name, const char *value, struct bytes *out);

void result_write_place(const struct run_spec *plan, uint64_t walls, uint64_t degraded,
                        struct bytes *out);
void result_write(const struct run *run, struct bytes *out);

/* A run that was under way when an earlier gloveboxd ended, from the log. */
struct lost_result {
    const char *id, *receipt;
    struct {
        const char *name, *digest;
    } policy, template;
};
void result_write_lost(const struct lost_result *lost, struct bytes *out);
void result_write_denial(const struct denial *denial, struct bytes *out);
void result_write_artifact(const struct artifact *artifact, struct bytes *out);
