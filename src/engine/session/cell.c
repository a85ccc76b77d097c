/* cell.c - one cell: a run in a session's sandbox. Its context goes on afterwards, so a cell is
 * ended by an interrupt first, and its interpreter is killed only if that does not help. */
#include "engine/session/contexts.h"

#include "base/clock.h"
#include "engine/review/output_check.h"
#include "engine/review/precheck.h"
#include "engine/session/session_internal.h"
#include "json/writer.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum {
    DIE_MS = 5000,   /* for a killed interpreter to end */
    EARLY_MS = 100,  /* before that a cell may miss an interrupt */
    REPEAT_MS = 250, /* after which it is interrupted again */
    EXIT_NOT_WRITTEN = 126,
};

/* --- the end ---------------------------------------------------------------------------------- */

static void leave_queue(struct context *context, struct run *run)
{
    struct run *before = NULL;
    for (struct run *at = context->first_queued; at; before = at, at = at->next_queued) {
        if (at != run)
            continue;
        *(before ? &before->next_queued : &context->first_queued) = run->next_queued;
        if (context->last_queued == run)
            context->last_queued = before;
        run->next_queued = NULL;
        context->queued--;
        return;
    }
}

static void read_counters(struct run *run, struct session *session)
{
    if (!session->sandbox)
        return;
    struct counters before = session->counters;
    before.cpu_us = run->counters_before.cpu_us;
    counters_read(sandbox_groups(session->sandbox), &session->counters);
    run->counters = session->counters;
    counters_subtract(&run->counters, &before);
}

/* The context may begin the next cell before this one is reported. */
static void finish(struct run *run)
{
    struct cell *cell = run->cell;
    struct context *context = cell->context;
    struct session *session = context->session;
    bool had_begun = run->state != RUN_QUEUED;
    cell->context = NULL;
    leave_queue(context, run);
    if (had_begun) {
        read_counters(run, session);
        session_charge(session);
        session_let_go(session);
        session->cells++;
    }
    if (context->running == run) {
        context->running = NULL;
        context->state = CONTEXT_IDLE;
    }
    session_done(session, &context->file);
    run->is_collected = run->started_us != 0; /* there is output to compare */
    if (!had_begun || session_route_ends(session, run))
        run_finish(run);
}

/* Reports what happened to the context as an exception of the code, if the code reported none. */
static void write_failure(struct run *run, const char *name, const char *value)
{
    if (run->collector.failure.size == 0)
        result_write_error(name, value, &run->collector.failure);
}

void cell_lost_session(struct run *run, const error *why)
{
    bool had_begun = run->state != RUN_QUEUED;
    run->context_end = why->text[0] ? "its session has ended" : NULL;
    write_failure(run, had_begun ? "SessionEnded" : "NotStarted", why->text);
    if (session_is_lost(run->cell->context->session))
        run->evidence.lost = true;
    else if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    run->ended_us = now_us();
    finish(run);
}

void cell_code_is_sent(struct run *run)
{
    run->cell->context->is_fresh = false;
    context_request_done(&run->cell->request);
}

void cell_end_unwritten(struct run *run, const error *why)
{
    struct context *context = run->cell->context;
    write_failure(run, "NotStarted", why->text);
    run->collector.has_exited = true;
    run->collector.exited.exit_code = EXIT_NOT_WRITTEN;
    run->evidence.hits[LIMIT_disk] += why->os == ENOSPC || why->os == EDQUOT;
    run->ended_us = now_us();
    finish(run);
    context_proceed(context);
}

/* --- the beginning ---------------------------------------------------------------------------- */

/* Copies the rules: the receipt may be written long after the session has ended, as its output may
 * be compared first, or the disk or the log waited for. */
static int copy_rules(struct run_spec *plan, const struct network_policy *narrowed, error *err)
{
    plan->narrowed = malloc(sizeof *plan->narrowed);
    if (!plan->narrowed)
        return fail(err, ERR_SYSTEM, "no memory for a cell");
    *plan->narrowed = *narrowed;
    plan->route = plan->narrowed;
    return 0;
}

static int grant(struct run *run, const struct session *session, const struct run_request *given,
                 error *err)
{
    static const enum limit_id of_cells[] = { LIMIT_wall, LIMIT_cpu, LIMIT_output };
    struct limits granted;
    uint64_t may = 0;
    run->plan = (struct run_spec){ .policy = session->plan.policy,
                                   .network = session->plan.network,
                                   .route = session->plan.route,
                                   .template = template_use(session->plan.template),
                                   .limits = session->plan.limits,
                                   .set = session->plan.set };
    if (policy_narrow(session->plan.policy, &given->limits, &granted, err) < 0)
        return -1;
    if (session->plan.narrowed && copy_rules(&run->plan, session->plan.narrowed, err) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof of_cells / sizeof *of_cells; i++) {
        uint64_t bit = UINT64_C(1) << of_cells[i];
        may |= bit;
        if (given->limits.given & bit)
            (void) limit_set(&run->plan.limits, of_cells[i], limit_get(&granted, of_cells[i]), err);
    }
    if (given->limits.given & ~may)
        return fail(err, ERR_LIMIT,
                    "a cell may ask for limits.wall_ms, cpu_ms and output_bytes; the session's "
                    "other limits are fixed when it begins");
    return 0;
}

void cell_begin(struct run *run)
{
    struct cell *cell = run->cell;
    struct context *context = cell->context;
    struct session *session = context->session;
    cell->number = ++context->cells;
    cell->is_first = context->is_fresh;
    run->leased_us = run->started_us = now_us();
    run->collector.phase = COLLECTOR_RUNNING;
    run->collector.running = ID_INTERPRETER;
    run->collector.has_started = true;
    run->counters_before.cpu_us = counters_cpu_us(sandbox_groups(session->sandbox));
    run_start_clock(run);
    session_hold(session);
    session_route_begins(session, run);
    if (context->between.size > 0)
        output_add(&run->collector.output[0], context->between.data, context->between.size);
    bytes_done(&context->between);
    error err;
    if (session_has_egress(session) && run_tell_began(run, &err) < 0) {
        cell_lost_session(run, &err);
        return;
    }
    if (cell_send_code(run, &err) < 0) {
        cell_lost_session(run, &err);
        return;
    }
    run_notify(run);
}

/* --- cancelling ------------------------------------------------------------------------------- */

static void signal_context(struct context *context, uint32_t number)
{
    struct agent_signal order = { .number = number, .whole_group = 1 };
    session_order(context->session, &context->process, AGENT_SIGNAL, &order, sizeof order);
}

static void stop(struct run *run)
{
    if (run->state != RUN_RUNNING)
        return;
    bool is_early = now_us() - run->started_us < EARLY_MS * INT64_C(1000);
    run_set_state(run, RUN_STOPPING);
    run->cell->is_interrupted = true;
    if (is_early || run->cell->is_first) {
        run->look = deadline_in(REPEAT_MS);
        run_set_timer(run);
    }
    signal_context(run->cell->context, SIGINT);
}

void cell_interrupt(struct run *run)
{
    stop(run);
}

/* The cell never began: the next one of its context may begin. */
static void leave(struct run *run)
{
    struct context *context = run->cell->context;
    finish(run);
    context_proceed(context);
}

static void cancel(struct run *run)
{
    bool is_at_gate = run->state == RUN_GATING;
    if ((run->state >= RUN_STOPPING && !is_at_gate) || finalize_is_under_way(run))
        return;
    if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    if (is_at_gate)
        run_finish(run); /* a comparison is cut short: no request waits for it */
    else if (run->state == RUN_QUEUED)
        leave(run);
    else
        stop(run);
}

/* The interrupt did not end the cell: kills the interpreter, or, if that did not help, ends the
 * session. */
static void escalate(struct run *run)
{
    struct cell *cell = run->cell;
    if (cell->is_killed) {
        error why;
        (void) fail(&why, ERR_TIMEOUT, "a killed interpreter did not end within %d ms", DIE_MS);
        session_end(cell->context->session, END_LOST, &why);
        return;
    }
    cell->is_killed = true;
    cell->context->end = "it did not stop when it was interrupted, and was killed";
    cell->context->end_is_ours = true;
    run->state_ends = deadline_in(DIE_MS);
    run_set_timer(run);
    context_kill(cell->context);
}

static void on_timed_out(struct run *run)
{
    if (run->state == RUN_COLLECTING)
        session_route_is_late(run);
    else
        escalate(run);
}

/* The first interrupt may have come before the interpreter was ready for it. */
static void interrupt_again(struct run *run)
{
    if (run->cell->is_first)
        run->look = deadline_in(REPEAT_MS);
    signal_context(run->cell->context, SIGINT);
}

static const struct group_directories *groups_of(const struct run *run)
{
    return sandbox_groups(run->cell->context->session->sandbox);
}

/* --- frames of its context -------------------------------------------------------------------- */

static void ended(struct run *run, bool with_context)
{
    struct cell *cell = run->cell;
    struct context *context = cell->context;
    run->ended_us = now_us();
    if (with_context) {
        run->context_end = context->end;
        char value[300];
        (void) snprintf(value, sizeof value,
                        "the interpreter of this context has ended: %s; the next cell starts a new "
                        "one",
                        context->end);
        write_failure(run, "ContextEnded", value);
    }
    finish(run);
    if (!with_context)
        context_proceed(context);
}

/* The collector knows one interpreter: that of this cell. */
int cell_on_frame(struct run *run, const struct agent_frame *frame, const unsigned char *payload,
                  error *err)
{
    struct agent_frame its = *frame;
    if (frame->id != 0)
        its.id = ID_INTERPRETER;
    int event = collector_frame(&run->collector, &its, payload, err);
    if (event < 0)
        return -1;
    if (event == COLLECTOR_ENDED) {
        ended(run, frame->kind == AGENT_EXITED);
    } else if (event == COLLECTOR_PRINTED) {
        run_printed(run);
    }
    return 0;
}

static void free_cell(struct run *run)
{
    if (run->cell)
        context_request_done(&run->cell->request);
    free(run->cell);
}

/* In addition to the fields of any run: which cell it was, and what happened to its context. If its
 * output is withheld, an interrupt by a limit is not shown, since the program can choose it. */
static void write_cell(const struct run *run, struct bytes *out)
{
    bool is_hidden = output_check_has_withheld(run) && run->verdict.fault == FAULT_POLICY;
    json_open_field(out, "cell", '{');
    json_string_field(out, "session", run->session);
    json_string_field(out, "context", run->context);
    json_count_field(out, "number", run->cell->number);
    json_flag_field(out, "interrupted", run->cell->is_interrupted && !is_hidden);
    json_string_field(out, "context_state", run->context_end ? "lost" : "kept");
    json_string_field(out, "context_end",
                      run->context_end && is_hidden ? "it ended" : run->context_end);
    json_close(out, '}');
}

static const struct run_kind run_kind_cell = {
    .start = "session",
    .states = STATES_OF_CELL,
    .is_cell = true,
    .groups = groups_of,
    .stop = stop,
    .look = interrupt_again,
    .timed_out = on_timed_out,
    .cancel = cancel,
    .leave_queue = leave,
    .write = write_cell,
    .free = free_cell,
};

int cell_new(struct context *context, struct context_request *request, struct run **ret_run,
             error *err)
{
    struct session *session = context->session;
    struct cell *cell = calloc(1, sizeof *cell);
    struct run *run = run_make(session->sessions->runs);
    if (!cell || !run || grant(run, session, request->given, err) < 0) {
        if (!cell || !run)
            (void) fail(err, ERR_SYSTEM, "no memory for a cell");
        free(cell);
        if (run)
            run_free(run);
        return -1;
    }
    cell->context = context;
    cell->request = *request;
    *request = (struct context_request){ 0 };
    (void) snprintf(cell->session_id, sizeof cell->session_id, "%s", session->id);
    (void) snprintf(cell->context_id, sizeof cell->context_id, "%s", context->id);
    run->cell = cell;
    run->kind = &run_kind_cell;
    run->session = cell->session_id;
    run->context = cell->context_id;
    run->account = session->account;
    run->plan.language = context->language;
    if (cell->request.given->run)
        (void) snprintf(run->id, sizeof run->id, "%s", cell->request.given->run);
    if (output_check_prepare(run, cell->request.given, err) < 0 ||
        run_note(run, cell->request.given, err) < 0 ||
        (!check_is_wanted(run) && run_ask(run, cell->request.given, err) < 0)) {
        run_free(run); /* also frees the cell */
        return -1;
    }
    run->walls = session->walls;
    run->degraded = session->degraded;
    collector_init(&run->collector, &run->plan.limits, run->plan.policy->name, run->runs->blobs);
    run->collector.owner = output_check_owner(run);
    run->has_harvest = true;
    runs_list(run->runs, run);
    *ret_run = run;
    return 0;
}
