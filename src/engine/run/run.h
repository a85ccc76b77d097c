/* run.h - one run, as the parts of gloveboxd see it. Doors read it and change nothing. Its states
 * are those of run_states.def. */
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
    enum run_state state; /* written by run_set_state() alone */
    struct runs *runs;
    struct account *account;     /* whose it is: accounts.h */
    int64_t charged_us;          /* fair_share_begins() */
    char request_id[65];         /* of the request that asked for it; "": it is not known */
    struct run_request *request; /* NULL once the inputs are in */
    struct run_spec plan;
    struct collector collector;
    bool has_harvest;   /* until every listener has read it */
    bool is_detached;   /* and for a while longer: run_detach() */
    uint64_t number;    /* counts runs, for pages of their list */
    int64_t created_ms; /* wall clock */

    struct pool_ticket *pending_lease; /* while building */
    struct sandbox *sandbox;
    enum run_start start;
    uint64_t walls, degraded;
    struct egress_route
        *route; /* out of the sandbox, where the policy has one; a session has that of its cells */
    struct connection_log story; /* as it is reported */
    bool inputs_are_in, is_collected;
    struct disk_job writing;       /* of its files, while is_writing */
    bool is_writing, awaits_files; /* it has come to its end, and the disk has not */

    uv_timer_t timer; /* for the next of these moments */
    bool timer_is_open;
    deadline state_ends; /* at_ms 0: never */
    deadline wall_ends;
    deadline cpu_look;
    deadline look; /* run_kind.look(), once; gone with the state */

    struct bytes certificates; /* that its programs trust; empty unless TLS is intercepted */
    size_t next_input;         /* which input is on its way, and from which byte */
    uint64_t input_offset;
    bool input_is_open, inputs_are_sent;
    bool collect_is_sent;
    bool is_judged;     /* run_settle() */
    bool is_concluding; /* init stops and collects by itself, once: AGENT_CONCLUDE */

    int64_t submitted_us, leased_us, started_us, ended_us, done_us;
    struct counters counters_before, counters;
    struct evidence evidence;
    struct verdict verdict;
    error fault;         /* what glovebox itself could not do, with a run that is lost */
    bool files_are_lost; /* the sandbox had to be killed before its files were taken */

    bool check_only;          /* nothing of it runs, whatever is found */
    struct helper_run *check; /* under way: it does not begin before that has ended */
    void (*check_told)(struct run *run);
    struct check_outcome *checks;      /* of it */
    uint64_t checks_cpu_us;            /* of programs of ours beside it */
    struct output_check *output_check; /* what is expected of its output; NULL: nothing */
    struct finalize *finalize; /* of its output; NULL: the result is built when it is reported */
    bool is_settled;           /* finalize_begin() */
    bool has_left;             /* runs_leave() */
    bool leftovers_are_known;  /* when it gave its sandbox back before it was done */
    uint64_t leftovers;
    bool is_checker;               /* of another run: only that one knows it (precheck.c) */
    struct cell *cell;             /* what a cell has besides (contexts.h); NULL: it is none */
    const char *session, *context; /* ids, of a cell; else NULL */
    const char *context_end;       /* why the interpreter of a cell has gone; NULL: it lives on */
    struct run_record *record;     /* what its receipt will say of its inputs */
    char approval[40];             /* that it waits for, was refused, or runs under; "": none */
    char receipt[RECEIPT_ID_SIZE];
    struct run_listener *listeners;
    struct bytes result; /* JSON, once done */
    struct run *next_queued;
    struct run *older, *newer;
};

/* output_withhold.c: the state as reported; a run that may be withheld reports its end with the
 * answer. */
enum run_state run_state_shown(const struct run *run);

/* verdict.c: what it has come to; done by run_conclude() unless it is needed before. */
void run_settle(struct run *run);

/* run.c */
int run_new(struct runs *runs, struct run_request *request, struct run **ret_run, error *err);
struct run *run_make(struct runs *runs); /* NULL: no memory */
void run_free(struct run *run);
/* A run of our own beside another one, as run_plan_grant_checker() has it. As run_new(). */
int run_new_checker(const struct run *disk_worker, const struct run_spec *place,
                    struct run_request *request, struct run **ret_run, error *err);
void run_drop(struct run *run); /* as run_free(), of one whose id was not handed out */
void run_release_buffers(
    struct run *run); /* keeps only the result, if it is done and has no listener */

/* run.c */
bool run_begin(struct run *run); /* into a sandbox; false: there is no room, it stays where it is */
void run_reject(struct run *run); /* it waits for a person, or may not run: nothing of it does */

/* Microseconds in the queue, all of its time if it never left it. */
int64_t run_queued_us(const struct run *run);

/* run_clock.c: the only function that writes the state of a run. */
void run_set_state(struct run *run, enum run_state next);
void run_bound_state(struct run *run);                   /* its bound counts from now on */
void run_set_timer(struct run *run);                     /* one of its moments has changed */
void run_start_clock(struct run *run);                   /* it is running */
void run_stop_for(struct run *run, enum limit_id limit); /* if it is running */

void run_notify(struct run *run);  /* its listeners: there is something new */
void run_printed(struct run *run); /* likewise; it is stopped if it is too much */

/* verdict.c: the disk takes its files; its sandbox is not heard meanwhile. */
void run_write_files(struct run *run);

/* verdict.c: its code has ended, or never begins. Judges it, proves it, writes its result: it is
 * done, at once or after its output has been compared or put together. */
void run_finish(struct run *run);
void run_presign_end(const struct run *run); /* its code has ended, its sandbox not yet */

/* runs.c: the run is known from now on; it has reached its end. */
void runs_list(struct runs *runs, struct run *run);
void runs_ended(struct runs *runs, struct run *run);
void runs_leave(struct run *run); /* it needs no sandbox any more: its turn is over before it is */
void runs_enqueue(struct run *run); /* it waits for its turn from now on */

/* inputs.c: sends inputs while there is room, the caller flushes; sets inputs_are_sent. */
void run_load(struct run *run);
void run_start_program(struct run *run, uint32_t id); /* a compiler, or the program */
void run_send_stdin(struct run *run);                 /* to an interpreter that runs code */

/* receipt_facts.c: notes a run before it begins, with what it is given; writes its receipt before
 * it is answered. */
int run_note(struct run *run, const struct run_request *request, error *err);
int run_write_receipt(struct run *run, error *err);
/* Writes into the log that it begins, once: before it has a way out, and before anything of it is
 * handed out while it runs. All else is handed out after its receipt. Fails  it must not be. */
int run_tell_began(struct run *run, error *err);
/* Of a run whose output is withheld: what there is to say now is said in its receipt, sealed, and
 * nothing of it openly. */
int run_seal(struct run *run, error *err);
void run_presign_receipt(const struct run *run);    /* as if this were how it has ended */
const char *run_traceparent(const struct run *run); /* of its caller; "": none is known */
void run_record_free(struct run *run); /* strikes the note, if no receipt was written */

/* SHA-256 of the code or the command, as the receipt names it. */
void run_code_hash(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE]);

/* approval_stage.c: asks for the approval that the policy wants. It may begin unless it is held
 * then: run->evidence says pending or denied. Fails  it must not begin. */
int run_ask(struct run *run, const struct run_request *request, error *err);
bool run_is_held(const struct run *run);
/* The same of one that was checked, and by what was found. Returns whether it may begin. */
bool run_ask_checked(struct run *run, const struct run_request *request);

/* limit_report.c */
uint64_t run_used(const struct run *run, enum limit_id limit);
/* The field `limit`; `is_withheld`: a policy keeps its output and files back. */
void result_write_limit(const struct run *run, bool is_withheld, struct bytes *out);

/* result_document.c, by the rows of model/result_fields.def */

/* An error as code raises it, of what glovebox itself has to say. */
void result_write_error(const char *name, const char *value, struct bytes *out);

void result_write_place(const struct run_spec *plan, uint64_t walls, uint64_t degraded,
                        struct bytes *out);
void result_write(const struct run *run, struct bytes *out);

/* A run that was under way when an earlier gloveboxd ended, as the log knows it. */
struct lost_result {
    const char *id, *receipt;
    struct {
        const char *name, *digest;
    } policy, template;
};
void result_write_lost(const struct lost_result *lost, struct bytes *out);
void result_write_denial(const struct denial *denial, struct bytes *out);
void result_write_artifact(const struct artifact *artifact, struct bytes *out);
