/* cell.c - one cell: a run whose sandbox is a session's. Its context lives on, so a cell that is
 * stopped is interrupted first, and its interpreter is killed only if that does not help. */
#include "engine/session/contexts.h"

#include "base/clock.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    HEED_MS = 2000,  /* for an interrupted cell to come to its end */
    DIE_MS = 5000,   /* for a killed interpreter to be gone */
    EARLY_MS = 100,  /* so soon after its beginning a cell may not have listened yet */
    REPEAT_MS = 250, /* when it is interrupted once more for that */
    FRAME_CODE_MAX = AGENT_PAYLOAD_MAX - 1024,
    EXIT_NOT_WRITTEN = 126,
    CPU_LOOK_MS = 100, /* how often the processor time is looked at */
};

static void on_timer(uv_timer_t *timer);

static void set_timer(struct run *run)
{
    int64_t left_ms = -1;
    deadline ends[] = { run->state_ends,
                        run->state == RUN_RUNNING ? run->wall_ends : (deadline){ 0 },
                        run->cpu_look };
    for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++) {
        if (ends[i].at_ms == 0)
            continue;
        int64_t its = deadline_left_ms(ends[i]);
        if (left_ms < 0 || its < left_ms)
            left_ms = its;
    }
    uv_update_time(run->runs->loop);
    if (left_ms < 0)
        (void) uv_timer_stop(&run->timer);
    else
        (void) uv_timer_start(&run->timer, on_timer, (uint64_t) left_ms, 0);
}

static void tell(struct run *run)
{
    for (struct run_listener *listener = run->listeners, *next; listener; listener = next) {
        next = listener->next;
        listener->changed(listener->context, run);
    }
}

/* --- the end ------------------------------------------------------------------------------------
 */

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

void cell_conclude(struct run *run)
{
    (void) uv_timer_stop(&run->timer);
    if (run->started_us != 0 && output_check_is_due(run)) {
        run->state = RUN_GATING;
        run->state_ends = (deadline){ 0 };
        runs_leave(run);
        output_check_begin(run, cell_conclude);
        return;
    }
    if (finalize_is_due(run)) {
        output_check_close(run);
        run->state = RUN_GATING;
        run->state_ends = (deadline){ 0 };
        if (!run->has_left)
            runs_leave(run);
        finalize_begin(run, cell_conclude);
        return;
    }
    run_conclude(run);
    runs_ended(run->runs, run);
}

/* The context is free for the next cell before this one is told: its answer costs nobody time. */
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
    run->state_ends = (deadline){ 0 };
    run->cpu_look = (deadline){ 0 };
    if (!had_begun || session_route_ends(session, run))
        cell_conclude(run);
    else if (run->state == RUN_COLLECTING)
        set_timer(run);
}

/* Says as an error of the code what has become of its context, if the code itself said nothing. */
static void write_failure(struct run *run, const char *name, const char *value)
{
    if (run->collector.failure.size == 0)
        result_write_error(name, value, &run->collector.failure);
}

void cell_lost_session(struct run *run, const error *why)
{
    struct cell *cell = run->cell;
    bool had_begun = run->state != RUN_QUEUED;
    cell->context_end = why->text[0] ? "its session has ended" : NULL;
    write_failure(run, had_begun ? "SessionEnded" : "NotStarted", why->text);
    if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    run->ended_us = now_us();
    finish(run);
}

/* --- the beginning ------------------------------------------------------------------------------
 */

/* Its receipt may be written when its session is long forgotten: after its output was compared, or
 * the disk or the log was waited for. */
static int keep_way(struct run_spec *plan, const struct network_policy *narrowed, error *err)
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
                                   .template_index = session->plan.template_index,
                                   .template = session->plan.template,
                                   .limits = session->plan.limits,
                                   .set = session->plan.set };
    if (policy_narrow(session->plan.policy, &given->limits, &granted, err) < 0)
        return -1;
    if (session->plan.narrowed && keep_way(&run->plan, session->plan.narrowed, err) < 0)
        return -1;
    for (unsigned i = 0; i < sizeof of_cells / sizeof *of_cells; i++) {
        uint64_t bit = UINT64_C(1) << of_cells[i];
        may |= bit;
        if (given->limits.given & bit)
            (void) limit_set(&run->plan.limits, of_cells[i], limit_get(&granted, of_cells[i]), err);
    }
    if (given->limits.given & ~may)
        return fail(err, ERR_LIMIT,
                    "a cell may ask for limits.wall_ms, cpu_ms and output_bytes; the others belong "
                    "to the session, from its beginning");
    return 0;
}

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
    run->account = session->account;
    run->plan.language = context->language;
    if (cell->request.given->run)
        (void) snprintf(run->id, sizeof run->id, "%s", cell->request.given->run);
    if (output_check_prepare(run, cell->request.given, err) < 0 ||
        run_note(run, cell->request.given, err) < 0 ||
        (!check_is_wanted(run) && run_ask(run, cell->request.given, err) < 0)) {
        run_free(run); /* with its cell */
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

static void path_of_code(const struct context *context, char *path, size_t size)
{
    (void) snprintf(path, size, "/run/%s.%u", context->id, context->process.id);
}

/* A fresh interpreter is told its folder and its environment; after that they are its own. No cell
 * has a stdin: a forked interpreter's ends here, a driver's never was. `path` is the file that has
 * the code, NULL: it goes along. */
static void send_execute(struct run *run, const char *path)
{
    struct context *context = run->cell->context;
    const struct run_request *given = run->cell->request.given;
    bool is_driver = context->kind->driver != NULL;
    bool is_fresh = context->is_fresh && !is_driver; /* a driver was told when it started */
    struct agent_execute execute = { .mode = AGENT_MODE_CELL,
                                     .arguments = path ? 1 : 0,
                                     .variables = is_fresh ? context->variables.count : 0,
                                     .code_size = path ? 0 : (uint32_t) given->code.text_size };
    const char *texts[] = { is_fresh ? context->folder : "", is_driver && path ? path : "", path };
    auto_bytes payload = { 0 };
    bytes_add(&payload, &execute, sizeof execute);
    for (unsigned i = 0; i < (path ? 3 : 2); i++)
        bytes_add(&payload, texts[i], strlen(texts[i]) + 1);
    if (is_fresh)
        bytes_add(&payload, context->variables.text.data, context->variables.text.size);
    if (!path)
        bytes_add(&payload, given->code.text, given->code.text_size);
    struct iovec part = { payload.data, payload.size };
    if (is_fresh)
        session_send(context->session, &context->process, AGENT_END, NULL, 0);
    session_send(context->session, &context->process, AGENT_EXECUTE, &part, 1);
    session_flush(context->session);
    context->is_fresh = false;
    context_request_done(&run->cell->request);
}

static int on_file(void *from, const struct agent_frame *frame, const unsigned char *payload,
                   error *err)
{
    struct run *run = from;
    struct context *context = run->cell->context;
    struct agent_done done;
    if (frame->kind != AGENT_DONE)
        return fail(err, ERR_PROTOCOL, "glovebox-init answered a file with a frame of kind %u",
                    frame->kind);
    session_done(context->session, &context->file);
    memcpy(&done, payload, sizeof done);
    if (done.os == 0) {
        char path[CONTEXT_ID_SIZE + 32];
        path_of_code(context, path, sizeof path);
        send_execute(run, path);
        return 0;
    }
    error why;
    (void) fail(&why, ERR_SYSTEM, "the code of the cell could not be written: %.*s",
                (int) (frame->size - sizeof done), (const char *) payload + sizeof done);
    write_failure(run, "NotStarted", why.text);
    run->collector.has_exited = true;
    run->collector.exited.exit_code = EXIT_NOT_WRITTEN;
    run->evidence.hits[LIMIT_disk] += done.os == ENOSPC || done.os == EDQUOT;
    run->ended_us = now_us();
    finish(run);
    context_proceed(context);
    return 0;
}

/* What does not fit into the frame, and what a driver runs, is a file before it is run. */
static int send_file(struct run *run, error *err)
{
    static unsigned char piece[AGENT_PAYLOAD_MAX / 3 * 3];
    struct context *context = run->cell->context;
    const struct payload *code = &run->cell->request.given->code;
    struct agent_put put = { .size = code->size,
                             .mtime_ns = wall_clock_ms() * 1000000,
                             .mode = 0644,
                             .flags = AGENT_PUT_SYSTEM };
    char path[CONTEXT_ID_SIZE + 32];
    path_of_code(context, path, sizeof path);
    context->file = (struct session_operation){ .context = run, .frame = on_file };
    if (session_begin(context->session, &context->file, err) < 0)
        return -1;
    struct iovec parts[2] = { { &put, sizeof put }, { path + 1, strlen(path + 1) } };
    session_send(context->session, &context->file, AGENT_PUT, parts, 2);
    for (uint64_t at = 0; at < code->size;) {
        size_t size = payload_read(code, at, piece, sizeof piece);
        struct iovec part = { piece, size };
        if (size == 0)
            break;
        session_send(context->session, &context->file, AGENT_DATA, &part, 1);
        at += size;
    }
    session_send(context->session, &context->file, AGENT_END, NULL, 0);
    session_flush(context->session);
    return 0;
}

void cell_begin(struct run *run)
{
    struct cell *cell = run->cell;
    struct context *context = cell->context;
    struct session *session = context->session;
    cell->number = ++context->cells;
    cell->is_first = context->is_fresh;
    run->state = RUN_RUNNING;
    run->leased_us = run->started_us = now_us();
    run->collector.phase = COLLECTOR_RUNNING;
    run->collector.running = ID_INTERPRETER;
    run->collector.has_started = true;
    run->counters_before.cpu_us = counters_cpu_us(sandbox_groups(session->sandbox));
    run->wall_ends = deadline_in((int64_t) run->plan.limits.wall + 1);
    run->cpu_look = deadline_in(CPU_LOOK_MS);
    session_hold(session);
    session_route_begins(session, run);
    if (context->between.size > 0)
        output_add(&run->collector.output[0], context->between.data, context->between.size);
    bytes_done(&context->between);
    error err;
    if (session_has_way(session) && run_tell_began(run, &err) < 0) {
        cell_lost_session(run, &err);
        return;
    }
    const struct payload *code = &cell->request.given->code;
    bool fits =
        !context->kind->driver &&
        code->text_size + context->variables.text.size + strlen(context->folder) < FRAME_CODE_MAX;
    if (fits) {
        send_execute(run, NULL);
    } else if (send_file(run, &err) < 0) {
        cell_lost_session(run, &err);
        return;
    }
    set_timer(run);
    tell(run);
}

/* --- stopping -----------------------------------------------------------------------------------
 */

static void signal_context(struct context *context, uint32_t number)
{
    struct agent_signal order = { .number = number, .whole_group = 1 };
    struct iovec part = { &order, sizeof order };
    session_send(context->session, &context->process, AGENT_SIGNAL, &part, 1);
    session_flush(context->session);
}

static void stop(struct run *run)
{
    if (run->state != RUN_RUNNING)
        return;
    bool is_early = now_us() - run->started_us < EARLY_MS * INT64_C(1000);
    run->state = RUN_STOPPING;
    run->cell->is_interrupted = true;
    run->state_ends = deadline_in(HEED_MS);
    run->cpu_look = is_early || run->cell->is_first ? deadline_in(REPEAT_MS) : (deadline){ 0 };
    signal_context(run->cell->context, SIGINT);
    set_timer(run);
}

void cell_interrupt(struct run *run)
{
    stop(run);
}

static void stop_for(struct run *run, enum limit_id limit)
{
    if (run->state != RUN_RUNNING)
        return;
    run->evidence.stopped_for = limit;
    stop(run);
}

/* It never began, and whoever stands behind it does not wait any longer. */
static void leave(struct run *run)
{
    struct context *context = run->cell->context;
    finish(run);
    context_proceed(context);
}

void cell_refuse(struct run *run)
{
    leave(run);
}

void cell_cancel(struct run *run)
{
    bool is_at_gate = run->state == RUN_GATING;
    if ((run->state >= RUN_STOPPING && !is_at_gate) || finalize_is_under_way(run))
        return;
    if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    if (is_at_gate)
        cell_conclude(run); /* what nobody waits for is not compared to its end */
    else if (run->state == RUN_QUEUED)
        leave(run);
    else
        stop(run);
}

/* It has not heeded the interrupt: its interpreter goes, or, if even that does not help, the
 * session. */
static void escalate(struct run *run)
{
    struct cell *cell = run->cell;
    if (cell->is_killed) {
        error why;
        (void) fail(&why, ERR_TIMEOUT, "a killed interpreter was not gone in %d ms", DIE_MS);
        session_end(cell->context->session, END_LOST, &why);
        return;
    }
    cell->is_killed = true;
    cell->context->end = "it did not heed an interrupt, and was killed";
    cell->context->end_is_ours = true;
    run->state_ends = deadline_in(DIE_MS);
    context_kill(cell->context);
    set_timer(run);
}

static void look_at_cpu(struct run *run)
{
    const struct session *session = run->cell->context->session;
    uint64_t used_us =
        counters_cpu_us(sandbox_groups(session->sandbox)) - run->counters_before.cpu_us;
    if (used_us >= run->plan.limits.cpu * 1000)
        stop_for(run, LIMIT_cpu);
    else
        run->cpu_look = deadline_in(CPU_LOOK_MS);
}

static void on_timer(uv_timer_t *timer)
{
    struct run *run = timer->data;
    if (run->state == RUN_COLLECTING) {
        session_route_is_late(run);
        return;
    }
    if (run->state == RUN_RUNNING && deadline_has_passed(run->wall_ends)) {
        stop_for(run, LIMIT_wall);
    } else if (run->state == RUN_RUNNING && deadline_has_passed(run->cpu_look)) {
        look_at_cpu(run);
    } else if (run->state == RUN_STOPPING && deadline_has_passed(run->state_ends)) {
        escalate(run);
        return;
    } else if (run->state == RUN_STOPPING && run->cpu_look.at_ms != 0 &&
               deadline_has_passed(run->cpu_look)) {
        run->cpu_look = run->cell->is_first ? deadline_in(REPEAT_MS) : (deadline){ 0 };
        signal_context(run->cell->context, SIGINT);
    }
    set_timer(run);
}

/* --- what its context says ----------------------------------------------------------------------
 */

static void ended(struct run *run, bool with_context)
{
    struct cell *cell = run->cell;
    struct context *context = cell->context;
    if (run->ended_us == 0 || run->state == RUN_RUNNING)
        run->ended_us = now_us();
    if (with_context) {
        cell->context_end = context->end;
        char value[300];
        (void) snprintf(value, sizeof value,
                        "the interpreter of this context is gone: %s; the next cell starts a fresh "
                        "one",
                        context->end);
        write_failure(run, "ContextEnded", value);
    }
    finish(run);
    if (!with_context)
        context_proceed(context);
}

/* To the harvest there is one interpreter, and it is this cell's. */
int cell_hears(struct run *run, const struct agent_frame *frame, const unsigned char *payload,
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
        if (output_is_flood(&run->collector.output[0]) ||
            output_is_flood(&run->collector.output[1]) || collector_is_flood(&run->collector))
            stop_for(run, LIMIT_output);
        tell(run);
    }
    return 0;
}

void cell_free(struct cell *cell)
{
    if (cell)
        context_request_done(&cell->request);
    free(cell);
}
