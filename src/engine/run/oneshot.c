/* oneshot.c - a run with a sandbox of its own. Events of the sandbox, the clock and the caller are
 * handled depending on its state (run_states.def). */
#include "engine/run/run.h"

#include "base/clock.h"
#include "engine/audit/audit_log.h"
#include "engine/network/egress_client.h"
#include "engine/network/trust_bundle.h"
#include "engine/observe/log.h"

#include <errno.h>
#include <stdio.h>

enum { STOPPED_WORD_MS = 3000 };
/* LOADING_LEFT_MS: the time of loading that is not spent on waiting for the log. */
enum { LOG_LOOK_MS = 5, LOADING_LEFT_MS = 15000 };
enum { AROUND_S = 120 }; /* bound on the time before and after the code */
enum { EXIT_NOT_FOUND = 127, EXIT_NOT_EXECUTABLE = 126 }; /* as in shells */

static void read_counters(struct run *run)
{
    counters_read(sandbox_groups(run->sandbox), &run->counters);
    counters_subtract(&run->counters, &run->counters_before);
}

static void on_way_ended(void *context)
{
    struct run *run = context;
    if (run->is_collected)
        run_finish(run);
}

/* The code has ended: the route is closed, and glovebox-egress sends its last records. */
static void close_route(struct run *run)
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
    log_event(RUN_LOST, TEXT("run", run->id), TEXT("request", run->request_id),
              TEXT("state", run_state_name(run->state)), TEXT("cause", cause->text));
    run->evidence.lost = true;
    run->files_are_lost = run->state >= RUN_RUNNING;
    if (run->sandbox && run->started_us != 0 && run->state != RUN_COLLECTING)
        read_counters(run);
    run_finish(run);
}

/* Ends every process of the sandbox from outside. */
static void lose_late(struct run *run)
{
    error cause;
    int max_ms = (int) run_state_max_ms(STATES_OF_ONESHOT, run->state);
    if (run->state == RUN_QUEUED)
        (void) fail(&cause, ERR_BUSY, "no sandbox became free in %d s; try again later",
                    max_ms / 1000);
    else
        (void) fail(&cause, ERR_TIMEOUT, "glovebox-init did not answer in %d ms while %s", max_ms,
                    run_state_name(run->state));
    if (run->sandbox)
        sandbox_kill(run->sandbox, &cause); /* on_broken() follows */
    else
        lose(run, &cause);
}

/* A program that did not die is killed from outside, and its files are lost. If the kernel says
 * that all processes have ended, only init's frame is missing, and we wait for the files. Time that
 * the disk takes does not count against init. */
static void on_timed_out(struct run *run)
{
    int64_t stopping_ms = (now_us() - run->ended_us) / 1000;
    if (!run->is_writing && (run->state != RUN_STOPPING || stopping_ms > STOPPED_WORD_MS ||
                             counters_processes(sandbox_groups(run->sandbox)) > 0))
        lose_late(run);
    else
        run_bound_state(run);
}

/* --- ending a program ------------------------------------------------------------------------- */

static void stop(struct run *run)
{
    run->ended_us = now_us();
    run_set_state(run, RUN_STOPPING);
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_STOP, .id = ID_STOP }, NULL, 0);
    sandbox_flush(run->sandbox);
}

static void cancel(struct run *run)
{
    if (run->state == RUN_DONE || run->state == RUN_STOPPING || finalize_is_under_way(run))
        return;
    if (run->evidence.stopped_for >= LIMITS)
        run->evidence.cancelled = true;
    if (run->state == RUN_RUNNING)
        stop(run);
    else
        run_finish(run);
}

static const struct group_directories *groups_of(const struct run *run)
{
    return sandbox_groups(run->sandbox);
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
    read_counters(run); /* while init ends the processes */
}

static void collect(struct run *run)
{
    close_route(run);
    run_set_state(run, RUN_COLLECTING);
    run->collector.phase = COLLECTOR_COLLECTING;
    if (run->collect_is_sent)
        return;
    if (!run->collector.has_measured) /* STOPPED has the figures */
        sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_MEASURE, .id = ID_COLLECT },
                     NULL, 0);
    send_collect(run);
}

/* The code in an interpreter has ended. Init now ends its other processes, before files are
 * read. */
static void begin_shutdown(struct run *run)
{
    run->ended_us = now_us();
    run_set_state(run, RUN_STOPPING);
    send_collect(run);
}

/* --- frames of the sandbox -------------------------------------------------------------------- */

/* The interpreter is ready: sends the code, which it runs. */
static void execute_code(struct run *run)
{
    struct iovec part = { run->plan.execute.data, run->plan.execute.size };
    run->collector.running = ID_INTERPRETER;
    run->collector.has_started = true;
    sandbox_send(run->sandbox, &(struct agent_frame){ .kind = AGENT_EXECUTE, .id = ID_INTERPRETER },
                 &part, 1);
    put_collect(run, AGENT_CONCLUDE);
    run->is_concluding = true;
    run_send_stdin(run);
    sandbox_flush(run->sandbox);
    if (run->state != RUN_DONE)
        run_notify(run);
}

static bool has_egress(const struct run *run)
{
    return run->plan.network == POLICY_NETWORK_RULES;
}

static void begin_code(struct run *run)
{
    error err;
    if (has_egress(run) && run_tell_began(run, &err) < 0) {
        lose(run, &err);
        return;
    }
    run->collector.phase = COLLECTOR_RUNNING;
    run->counters_before.cpu_us = sandbox_cpu_before_us(run->sandbox);
    run->started_us = now_us();
    run_start_clock(run); /* before sending: that may end the run */
    if (run->plan.set >= 0)
        execute_code(run);
    else
        run_start_program(run, run->plan.compile.size > 0 ? ID_COMPILER : ID_PROGRAM);
    request_free(run->request);
    run->request = NULL;
    bytes_done(&run->certificates);
}

/* Is its beginning to be written to the log, which another process has locked? */
static bool log_is_awaited(const struct run *run)
{
    return has_egress(run) && run->record && deadline_left_ms(run->state_ends) > LOADING_LEFT_MS &&
           receipts_are_held(run->runs->receipts);
}

/* Starts the code when all that it needs is there. */
static void begin_if_ready(struct run *run)
{
    if (run->state != RUN_LOADING || !run->inputs_are_in || (!run->route && has_egress(run)))
        return;
    if (!log_is_awaited(run)) {
        begin_code(run);
        return;
    }
    run->look = deadline_in(LOG_LOOK_MS);
    run_set_timer(run);
}

/* The certificates to trust are written before all other inputs. */
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

/* The sockets have come from inside: from now on glovebox-egress accepts on them. */
static void open_route(struct run *run)
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

static void on_route(void *context)
{
    struct run *run = context;
    open_route(run);
    if (run->state != RUN_DONE)
        begin_if_ready(run);
}

static void on_loaded(struct run *run)
{
    if (!run->inputs_are_sent)
        return; /* all that was sent has arrived, more follows */
    if (run->collector.load_failure.code != ERR_NONE) {
        error cause = run->collector.load_failure;
        (void) under(&cause, "an input could not be written");
        if (cause.os == ENOSPC || cause.os == EDQUOT) {
            run->evidence.stopped_for = LIMIT_disk;
            run_finish(run);
        } else {
            lose(run, &cause);
        }
        return;
    }
    run->inputs_are_in = true;
    begin_if_ready(run);
}

/* The program could not be executed: the exit code is that of shells. */
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
        run_start_program(run, ID_PROGRAM);
    } else {
        stop(run); /* ends processes of the compiler before files are read */
    }
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct run *run = context;
    int event = collector_frame(&run->collector, frame, payload, err);
    if (event < 0)
        return -1;
    if (event != COLLECTOR_COLLECTED && run->collector.unwritten >= UNWRITTEN_MAX) {
        run_write_files(run);
        return 1; /* the other bytes that were read wait, too */
    }
    switch ((enum collector_event) event) {
    case COLLECTOR_NOTHING:
        break;
    case COLLECTOR_LOADED:
        on_loaded(run);
        break;
    case COLLECTOR_STARTED:
        run_notify(run);
        break;
    case COLLECTOR_NOT_STARTED:
        if (run->state == RUN_RUNNING)
            on_not_started(run);
        break;
    case COLLECTOR_PRINTED:
        run_printed(run);
        break;
    case COLLECTOR_ENDED:
        on_program_ended(run);
        break;
    case COLLECTOR_STOPPED:
        if (run->state != RUN_STOPPING)
            return fail(err, ERR_PROTOCOL, "glovebox-init stopped unexpectedly");
        collect(run);
        break;
    case COLLECTOR_COLLECTED:
        run->is_collected = true;
        if (!run->route || egress_route_has_ended(run->route)) {
            run_finish(run);
            return 1; /* the sandbox was returned */
        }
        break; /* records of glovebox-egress are still to come */
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

/* --- the beginning ---------------------------------------------------------------------------- */

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
                                 .route = has_egress(run) ? on_route : NULL,
                                 .broken = on_broken };
    sandbox_use(sandbox, &user);
    run_set_state(run, RUN_LOADING);
    if (has_egress(run))
        open_route(run);
    if (run->state == RUN_DONE)
        return;
    run_load(run);
    run->inputs_are_in = run->inputs_are_sent && run->next_input == 0; /* no inputs */
    begin_if_ready(run);
    if (run->state == RUN_LOADING)
        sandbox_flush(run->sandbox);
}

bool run_begin(struct run *run)
{
    error err;
    struct lease lease = {
        .template = run->plan.template->index,
        .network = run_plan_network(&run->plan),
        .route = run_plan_route(&run->plan),
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
    run_set_state(run, RUN_BUILDING);
    if (leased < 0)
        lose(run, &err);
    else if (idle)
        on_leased(run, idle, START_PARKED, NULL);
    return true;
}

const struct run_kind run_kind_oneshot = {
    .states = STATES_OF_ONESHOT,
    .groups = groups_of,
    .stop = stop,
    .look = begin_if_ready,
    .timed_out = on_timed_out,
    .cancel = cancel,
    .leave_queue = run_finish,
};
