/* oneshot.c - the life of a run. Each event of its sandbox, its clock or its caller meets it in a
 * state; what a state means and how long it may last stands in the table below the picture in
 * run.h. */
#include "engine/run/run.h"

#include "base/clock.h"
#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/network/egress_client.h"
#include "engine/network/trust_bundle.h"
#include "engine/observe/log.h"
#include "engine/session/contexts.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { CPU_LOOK_MIN_MS = 5, CPU_LOOK_MAX_MS = 1000, STOPPED_WORD_MS = 3000 };
enum { LOG_LOOK_MS = 5, LOADING_LEFT_MS = 15000 }; /* so much of its time is not spent on the log */
enum { AROUND_S = 120 }; /* the longest that a run may last before and after its code */
enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 }; /* as shells tell it */

static void begin_if_ready(struct run *run);
static void finish(struct run *run);
static void on_state_timeout(struct run *run);
static void on_stop_timeout(struct run *run);

static const struct state_row {
    const char *name;
    int64_t max_ms; /* 0: as long as it takes; other bounds hold there */
    void (*late)(struct run *);
} states[RUN_STATES] = {
    /* clang-format off */
    [RUN_QUEUED]     = { "queued",     60000, on_state_timeout },
    [RUN_BUILDING]   = { "building",   15000, on_state_timeout },
    [RUN_LOADING]    = { "loading",    30000, on_state_timeout },
    [RUN_RUNNING]    = { "running",    0,     NULL },      /* the wall limit */
    [RUN_STOPPING]   = { "stopping",   1000,  on_stop_timeout },
    [RUN_COLLECTING] = { "collecting", 30000, on_state_timeout },
    [RUN_GATING]     = { "gating",     0,     NULL },      /* the bounds of the run beside it */
    [RUN_DONE]       = { "done",       0,     NULL },
    /* clang-format on */
};

static const bool may_become[RUN_STATES][RUN_STATES] = {
    [RUN_QUEUED] = { [RUN_BUILDING] = true, [RUN_DONE] = true },
    [RUN_BUILDING] = { [RUN_LOADING] = true, [RUN_DONE] = true },
    [RUN_LOADING] = { [RUN_RUNNING] = true, [RUN_DONE] = true },
    [RUN_RUNNING] = { [RUN_STOPPING] = true,
                      [RUN_COLLECTING] = true,
                      [RUN_GATING] = true,
                      [RUN_DONE] = true },
    [RUN_STOPPING] = { [RUN_COLLECTING] = true, [RUN_GATING] = true, [RUN_DONE] = true },
    [RUN_COLLECTING] = { [RUN_GATING] = true, [RUN_DONE] = true },
    [RUN_GATING] = { [RUN_DONE] = true },
};

const char *run_state_name(enum run_state state)
{
    return states[state].name;
}

/* --- the clock ----------------------------------------------------------------------------------
 */

static void on_timer(uv_timer_t *timer);

static void sooner(int64_t *left_ms, deadline end)
{
    if (end.at_ms == 0)
        return;
    int64_t its = deadline_left_ms(end);
    if (*left_ms < 0 || its < *left_ms)
        *left_ms = its;
}

static void set_timer(struct run *run)
{
    int64_t left_ms = -1;
    sooner(&left_ms, run->state_ends);
    if (run->state == RUN_LOADING)
        sooner(&left_ms, run->log_look);
    if (run->state == RUN_RUNNING) {
        sooner(&left_ms, run->wall_ends);
        sooner(&left_ms, run->cpu_look);
    }
    uv_update_time(run->runs->loop);
    if (left_ms < 0)
        (void) uv_timer_stop(&run->timer);
    else
        (void) uv_timer_start(&run->timer, on_timer, (uint64_t) left_ms, 0);
}

static void become(struct run *run, enum run_state next)
{
    assert(may_become[run->state][next]);
    run->state = next;
    run->state_ends = (deadline){ 0 };
    if (states[next].max_ms > 0)
        run->state_ends = deadline_in(states[next].max_ms);
    set_timer(run);
}

void run_wait(struct run *run)
{
    run->state_ends = deadline_in(states[RUN_QUEUED].max_ms);
    set_timer(run);
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

static void read_counters(struct run *run)
{
    counters_read(sandbox_groups(run->sandbox), &run->counters);
    counters_subtract(&run->counters, &run->counters_before);
}

/* What comes next needs no sandbox of its, and may need its place: nothing is held meanwhile. */
static void give_back(struct run *run)
{
    struct sandbox *sandbox = run->sandbox;
    if (run->state == RUN_GATING)
        return;
    become(run, RUN_GATING);
    run->leftovers_are_known = counters_count(sandbox_groups(sandbox), &run->leftovers);
    run->sandbox = NULL;
    runs_leave(run);
    pool_return(run->runs->pool, sandbox);
}

/* Answers first, gives the sandbox back after: the caller does not wait for its end. */
static void finish(struct run *run)
{
    if (run->state == RUN_DONE || finalize_is_under_way(run))
        return;
    if (run->state == RUN_COLLECTING && run->is_collected && output_check_is_due(run)) {
        give_back(run);
        output_check_begin(run, finish);
        return;
    }
    if (run->state >= RUN_RUNNING && finalize_is_due(run)) {
        output_check_close(run);
        give_back(run);
        finalize_begin(run, finish);
        return;
    }
    assert(may_become[run->state][RUN_DONE]);
    run_conclude(run);
    struct sandbox *sandbox = run->sandbox;
    run->sandbox = NULL;
    if (run->pending_lease)
        pool_abandon(run->pending_lease);
    run->pending_lease = NULL;
    runs_ended(run->runs, run);
    if (sandbox)
        pool_return(run->runs->pool, sandbox);
    log_event(LOG_DEBUG, "run.ended", TEXT("run", run->id), TEXT("request", run->request_id),
              TEXT("key", run->account->key.id),
              TEXT("status", outcome_status_name(run->verdict.status)),
              COUNT("took_us", run->done_us - run->submitted_us));
}

static void on_way_ended(void *context)
{
    struct run *run = context;
    if (run->is_collected)
        finish(run);
}

/* The code has ended: nothing of it is on its way any more, and what passed can be told. */
static void end_way(struct run *run)
{
    if (run->route)
        egress_route_end(run->route, on_way_ended, run);
}

static void lose(struct run *run, const error *cause)
{
    if (run->state == RUN_DONE || finalize_is_under_way(run))
        return;
    if (run->evidence.stopped_for >= LIMITS && !run->evidence.cancelled)
        run->fault = *cause;
    log_event(LOG_WARNING, "run.lost", TEXT("run", run->id), TEXT("request", run->request_id),
              TEXT("state", states[run->state].name), TEXT("cause", cause->text));
    run->evidence.lost = true;
    run->files_are_lost = run->state >= RUN_RUNNING;
    if (run->sandbox && run->started_us != 0 && run->state != RUN_COLLECTING)
        read_counters(run);
    finish(run);
}

/* Every process of the sandbox is ended from outside. */
static void on_state_timeout(struct run *run)
{
    error cause;
    if (run->state == RUN_QUEUED)
        (void) fail(&cause, ERR_BUSY, "no sandbox became free in %d s; try again later",
                    (int) (states[RUN_QUEUED].max_ms / 1000));
    else
        (void) fail(&cause, ERR_TIMEOUT, "glovebox-init did not answer in %d ms while %s",
                    (int) states[run->state].max_ms, states[run->state].name);
    if (run->sandbox)
        sandbox_kill(run->sandbox, &cause); /* told back by on_broken */
    else
        lose(run, &cause);
}

/* A program that has not died is killed from outside, and its files are lost. If the kernel says
 * that all have died, only init's word is missing, and the files are worth waiting for. */
static void on_stop_timeout(struct run *run)
{
    int64_t stopping_ms = (now_us() - run->ended_us) / 1000;
    if (counters_processes(sandbox_groups(run->sandbox)) > 0 || stopping_ms > STOPPED_WORD_MS) {
        on_state_timeout(run);
        return;
    }
    run->state_ends = deadline_in(states[RUN_STOPPING].max_ms);
    set_timer(run);
}

/* --- ending a program ---------------------------------------------------------------------------
 */

static void stop(struct run *run)
{
    run->ended_us = now_us();
    become(run, RUN_STOPPING);
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_STOP, .id = ID_STOP }, NULL, 0);
    sandbox_flush(run->sandbox);
}

static void stop_for(struct run *run, enum limit_id limit)
{
    if (run->state != RUN_RUNNING)
        return;
    run->evidence.stopped_for = limit;
    stop(run);
}

void run_reject(struct run *run)
{
    run->evidence.denied = !run->evidence.pending;
    if (run->fault.code == ERR_NONE) /* nobody was asked: the pre-check alone has said no */
        check_refuse(run, &run->collector.denials);
    if (run->cell)
        cell_refuse(run);
    else
        finish(run);
}

void run_finish_check_only(struct run *run)
{
    run->evidence.exited = true;
    finish(run);
}

void run_cancel(struct run *run)
{
    if (run->cell) {
        cell_cancel(run);
        return;
    }
    if (run->state == RUN_DONE || run->state == RUN_STOPPING || finalize_is_under_way(run))
        return;
    if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    if (run->state == RUN_RUNNING)
        stop(run);
    else
        finish(run);
}

static void put_collect(struct run *run, enum agent_kind kind)
{
    struct agent_collect order = { .bytes_max = run->plan.limits.artifacts,
                                   .files_max = (uint32_t) run->plan.limits.artifact_files };
    struct iovec part = { &order, sizeof order };
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = (uint16_t) kind, .id = ID_COLLECT },
                 &part, 1);
}

static void send_collect(struct run *run)
{
    if (!run->is_concluding)
        put_collect(run, AGENT_COLLECT);
    run->collect_is_sent = true;
    sandbox_flush(run->sandbox);
    if (run->state == RUN_DONE)
        return;
    read_counters(run); /* while init is at it */
    if (run->is_concluding)
        run_presign_end(run);
}

static void collect(struct run *run)
{
    end_way(run);
    become(run, RUN_COLLECTING);
    run->collector.phase = COLLECTOR_COLLECTING;
    if (run->collect_is_sent)
        return;
    if (!run->collector.has_measured) /* STOPPED brings the figures with it */
        sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_MEASURE, .id = ID_COLLECT },
                     NULL, 0);
    send_collect(run);
}

/* The code in an interpreter has come to its end. What it has left behind is ended before files are
 * taken: init is at it. */
static void begin_shutdown(struct run *run)
{
    run->ended_us = now_us();
    become(run, RUN_STOPPING);
    send_collect(run);
}

/* --- limits that gloveboxd itself holds ---------------------------------------------------------
 */

/* It cannot be used up sooner than this, with every processor busy. */
static void look_at_cpu_later(struct run *run, uint64_t left_us)
{
    int64_t min_ms = (int64_t) (left_us / run->runs->processors / 1000);
    if (min_ms < CPU_LOOK_MIN_MS)
        min_ms = CPU_LOOK_MIN_MS;
    if (min_ms > CPU_LOOK_MAX_MS)
        min_ms = CPU_LOOK_MAX_MS;
    run->cpu_look = deadline_in(min_ms);
}

static void look_at_cpu(struct run *run)
{
    uint64_t limit_us = run->plan.limits.cpu * 1000;
    uint64_t used_us = counters_cpu_us(sandbox_groups(run->sandbox));
    used_us = used_us > run->counters_before.cpu_us ? used_us - run->counters_before.cpu_us : 0;
    if (used_us >= limit_us)
        stop_for(run, LIMIT_cpu);
    else
        look_at_cpu_later(run, limit_us - used_us);
}

static void on_timer(uv_timer_t *timer)
{
    struct run *run = timer->data;
    if (run->state == RUN_RUNNING && deadline_has_passed(run->wall_ends))
        stop_for(run, LIMIT_wall);
    else if (run->state == RUN_RUNNING && deadline_has_passed(run->cpu_look))
        look_at_cpu(run);
    else if (run->state == RUN_LOADING && run->log_look.at_ms != 0 &&
             deadline_has_passed(run->log_look))
        begin_if_ready(run);
    else if (run->state_ends.at_ms != 0 && deadline_has_passed(run->state_ends)) {
        states[run->state].late(run);
        return;
    }
    if (run->state != RUN_DONE)
        set_timer(run);
}

/* --- what the sandbox says ----------------------------------------------------------------------
 */

/* All of its stdin goes at once: it is no more than the interpreter's init takes without asking. */
static void send_stdin(struct run *run, const struct run_request *request)
{
    static unsigned char piece[AGENT_PAYLOAD_MAX];
    struct agent_frame frame = { .kind = AGENT_DATA, .id = ID_INTERPRETER };
    size_t size = request && request->has_stdin
                      ? payload_read(&request->stdin_content, 0, piece, sizeof piece / 3 * 3)
                      : 0;
    struct iovec part = { piece, size };
    if (size > 0)
        sandbox_send(run->sandbox, &frame, &part, 1);
    frame.kind = AGENT_END;
    sandbox_send(run->sandbox, &frame, NULL, 0);
}

/* The interpreter is there and warm: it gets the code, and answers when the code has ended. */
static void execute_code(struct run *run)
{
    struct iovec part = { run->plan.execute.data, run->plan.execute.size };
    run->collector.running = ID_INTERPRETER;
    run->collector.has_started = true;
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_EXECUTE, .id = ID_INTERPRETER },
                 &part, 1);
    put_collect(run, AGENT_CONCLUDE);
    run->is_concluding = true;
    send_stdin(run, run->request);
    sandbox_flush(run->sandbox);
    if (run->state != RUN_DONE)
        tell(run);
}

static void start_program(struct run *run, uint32_t id)
{
    struct bytes *payload = id == ID_COMPILER ? &run->plan.compile : &run->plan.program;
    struct iovec part = { payload->data, payload->size };
    run->collector.running = id;
    run->collector.has_started = run->collector.has_exited = false;
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_START, .id = id }, &part, 1);
    sandbox_flush(run->sandbox);
}

static bool has_way(const struct run *run)
{
    return run->plan.network == POLICY_NETWORK_RULES;
}

static void begin_code(struct run *run)
{
    error err;
    if (has_way(run) && run_tell_began(run, &err) < 0) {
        lose(run, &err);
        return;
    }
    run->collector.phase = COLLECTOR_RUNNING;
    run->counters_before.cpu_us = sandbox_cpu_before_us(run->sandbox);
    run->started_us = now_us();
    run->wall_ends =
        deadline_in((int64_t) run->plan.limits.wall + 1); /* never early by a fraction */
    look_at_cpu_later(run, run->plan.limits.cpu * 1000);
    become(run, RUN_RUNNING); /* before anything is sent: sending may be the end of it */
    if (run->plan.set >= 0)
        execute_code(run);
    else
        start_program(run, run->plan.compile.size > 0 ? ID_COMPILER : ID_PROGRAM);
    request_free(run->request);
    run->request = NULL;
    bytes_done(&run->certificates);
}

/* Its beginning is to be written to the log, which another process has locked. */
static bool log_is_awaited(const struct run *run)
{
    return has_way(run) && run->record && deadline_left_ms(run->state_ends) > LOADING_LEFT_MS &&
           receipts_are_held(run->runs->receipts);
}

/* Everything that the code may count on is there before its first line. */
static void begin_if_ready(struct run *run)
{
    run->log_look = (deadline){ 0 };
    if (run->state != RUN_LOADING || !run->inputs_are_in || (!run->route && has_way(run)))
        return;
    if (!log_is_awaited(run)) {
        begin_code(run);
        return;
    }
    run->log_look = deadline_in(LOG_LOOK_MS);
    set_timer(run);
}

/* What its programs are to trust goes in before everything else. */
static void on_certified(void *context, const char *certificate)
{
    struct run *run = context;
    error err;
    if (run->state != RUN_LOADING)
        return;
    if (!certificate)
        (void) fail(&err, ERR_UNAVAILABLE,
                    "glovebox-egress ended before the code began; run it again");
    if (!certificate ||
        certificates_write(run->plan.template, certificate, &run->certificates, &err) < 0) {
        lose(run, &err);
        return;
    }
    run_load(run);
    sandbox_flush(run->sandbox);
}

/* The sockets inside have come: from now on glovebox-egress listens there. */
static void open_way(struct run *run)
{
    error err;
    struct egress_route_terms terms = {
        .order = { run->id, run->account, run->plan.policy, run->plan.route },
        .life_s = (uint32_t) (run->plan.limits.wall / 1000) + AROUND_S,
        .certified = on_certified,
        .context = run
    };
    terms.sockets.count = sandbox_take_sockets(run->sandbox, terms.sockets.list);
    if (terms.sockets.count == 0)
        return;
    if (egress_route_open(run->runs->network, &terms, &run->route, &err) < 0)
        lose(run, &err);
}

static void on_way(void *context)
{
    struct run *run = context;
    open_way(run);
    if (run->state != RUN_DONE)
        begin_if_ready(run);
}

static void on_loaded(struct run *run)
{
    if (!run->inputs_are_sent)
        return; /* everything so far has arrived, more follows */
    if (run->collector.load_failure.code != ERR_NONE) {
        error cause = run->collector.load_failure;
        (void) under(&cause, "an input could not be written");
        if (cause.os == ENOSPC || cause.os == EDQUOT) {
            run->evidence.stopped_for = LIMIT_disk;
            finish(run);
        } else {
            lose(run, &cause);
        }
        return;
    }
    run->inputs_are_in = true;
    begin_if_ready(run);
}

/* The program itself could not be executed: to its caller that is how shells have always told it.
 */
static void on_not_started(struct run *run)
{
    const error *cause = &run->collector.start_failure;
    char line[300];
    int size = snprintf(line, sizeof line, "glovebox: %s\n", cause->text);
    if (size > 0)
        output_add(&run->collector.output[1], line, (size_t) size);
    bool is_missing = cause->os == ENOENT || cause->os == ENOTDIR;
    run->collector.exited.exit_code = is_missing ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
    run->collector.exited.signal = 0;
    run->collector.has_exited = true;
    run->ended_us = now_us();
    collect(run);
}

static void on_program_ended(struct run *run)
{
    const struct collector *collector = &run->collector;
    bool was_compiler = collector->running == ID_COMPILER;
    if (run->state == RUN_STOPPING)
        return; /* STOPPED follows */
    if (collector->running == ID_INTERPRETER) {
        begin_shutdown(run);
    } else if (!was_compiler) {
        run->ended_us = now_us();
        collect(run);
    } else if (collector->exited.exit_code == 0) {
        start_program(run, ID_PROGRAM);
    } else {
        stop(run); /* what the compiler has left behind ends before files are taken */
    }
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct run *run = context;
    int event = collector_frame(&run->collector, frame, payload, err);
    if (event < 0)
        return -1;
    switch ((enum collector_event) event) {
    case COLLECTOR_NOTHING:
        break;
    case COLLECTOR_LOADED:
        on_loaded(run);
        break;
    case COLLECTOR_STARTED:
        tell(run);
        break;
    case COLLECTOR_NOT_STARTED:
        if (run->state == RUN_RUNNING)
            on_not_started(run);
        break;
    case COLLECTOR_PRINTED:
        if (output_is_flood(&run->collector.output[0]) ||
            output_is_flood(&run->collector.output[1]) || collector_is_flood(&run->collector))
            stop_for(run, LIMIT_output);
        tell(run);
        break;
    case COLLECTOR_ENDED:
        on_program_ended(run);
        break;
    case COLLECTOR_STOPPED:
        if (run->state != RUN_STOPPING)
            return fail(err, ERR_PROTOCOL, "glovebox-init stopped unasked");
        collect(run);
        break;
    case COLLECTOR_COLLECTED:
        run->is_collected = true;
        if (!run->route || egress_route_has_ended(run->route)) {
            finish(run);
            return 1; /* the sandbox has been given back */
        }
        break; /* glovebox-egress has the last word */
    }
    return run->state >= RUN_GATING; /* likewise */
}

static void on_room(void *context)
{
    struct run *run = context;
    if (run->state != RUN_LOADING)
        return;
    run_load(run);
    sandbox_flush(run->sandbox);
}

static void on_broken(void *context, const error *cause)
{
    lose(context, cause);
}

/* --- the beginning ------------------------------------------------------------------------------
 */

static void on_leased(void *context, struct sandbox *sandbox, enum run_start start,
                      const error *cause)
{
    struct run *run = context;
    run->pending_lease = NULL;
    if (!sandbox) {
        error told = *cause;
        (void) under(&told, "build a sandbox");
        lose(run, &told);
        return;
    }
    run->sandbox = sandbox;
    run->start = start;
    run->walls = sandbox_walls(sandbox);
    run->degraded = sandbox_degraded(sandbox);
    struct sandbox_user user = { .context = run,
                                 .frame = on_frame,
                                 .room = on_room,
                                 .route = has_way(run) ? on_way : NULL,
                                 .broken = on_broken };
    sandbox_use(sandbox, &user);
    become(run, RUN_LOADING);
    if (has_way(run))
        open_way(run);
    if (run->state == RUN_DONE)
        return;
    run_load(run);
    run->inputs_are_in = run->inputs_are_sent && run->next_input == 0; /* there are none */
    begin_if_ready(run);
    if (run->state == RUN_LOADING)
        sandbox_flush(run->sandbox);
}

bool run_begin(struct run *run)
{
    error err;
    struct lease lease = {
        .template = run->plan.template_index,
        .network = run_plan_network(&run->plan),
        .route = run_plan_way(&run->plan),
        .tenant = run->account->tenant,
        .set = run->plan.set,
        .limits = &run->plan.limits,
        .has_queue = true,
        .told = on_leased,
        .context = run,
    };
    struct sandbox *idle = NULL;
    int leased = pool_lease(run->runs->pool, &lease, &run->pending_lease, &idle, &err);
    if (leased == POOL_FULL)
        return false;
    run->leased_us = now_us();
    become(run, RUN_BUILDING);
    if (leased < 0)
        lose(run, &err);
    else if (idle)
        on_leased(run, idle, START_PARKED, NULL);
    return true;
}
