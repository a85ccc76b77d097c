/* verdict.c - the end of a run: collects what it used and what was refused, judges it, writes its
 * receipt and its result. */
#include "engine/run/run.h"

#include "engine/network/egress_client.h"
#include "engine/observe/log.h"
#include "engine/run/finalize.h"

#include <stdio.h>

/* Refused connections are denials like any other. */
static void gather_connections(struct run *run)
{
    struct denials *denials = &run->collector.denials;
    if (run->route)
        egress_route_tell(run->route, 0, &run->connections);
    for (size_t i = 0; i < run->connections.count; i++) {
        const struct egress_record *record = &run->connections.records[i];
        char target[DENIAL_TARGET_SIZE];
        if (record->reason == EGRESS_ALLOWED || record->reason == EGRESS_ENDED)
            continue;
        (void) snprintf(target, sizeof target, "%.140s:%u", record->name[0] ? record->name : "?",
                        record->port);
        denials_add(denials, DENIAL_CONNECTION, target, network_reason_text(record->reason), 1);
    }
    if (run->connections.unlisted > 0)
        denials_add(denials, DENIAL_CONNECTION, "more", "connections that are not listed",
                    run->connections.unlisted);
    if (run->connections.failure)
        denials_add(denials, DENIAL_EGRESS, "glovebox-egress", run->connections.failure, 1);
}

static void gather_hits(struct run *run)
{
    uint64_t *hits = run->evidence.hits;
    const struct collector *collector = &run->collector;
    hits[LIMIT_memory] += run->counters.memory_kills;
    hits[LIMIT_processes] += run->counters.processes_refused;
    hits[LIMIT_cpu] += run->counters.cpu_us > run->plan.limits.cpu * 1000; /* since last checked */
    if (collector->has_measured) {
        hits[LIMIT_disk] += collector->measured.disk_was_full != 0;
        hits[LIMIT_inodes] += collector->measured.inodes_were_full != 0;
    }
    hits[LIMIT_output] += (uint64_t) output_is_truncated(&collector->output[0]) +
                          (uint64_t) output_is_truncated(&collector->output[1]);
    hits[LIMIT_artifacts] += collector->artifacts_cut;
    hits[LIMIT_artifact_files] += collector->artifact_files_cut;
    if (run->evidence.stopped_for < LIMITS && hits[run->evidence.stopped_for] == 0)
        hits[run->evidence.stopped_for] = 1;
}

/* A cell whose interpreter has ended did not finish, whatever the exit code is. */
static struct verdict judge(const struct run *run)
{
    struct verdict verdict = outcome_judge(&run->evidence);
    if (run->context_end && verdict.status == RUN_OK)
        verdict = (struct verdict){ .status = RUN_ERROR, .fault = FAULT_CODE, .limit = LIMITS };
    return verdict;
}

/* Without a receipt there is no answer: nothing of the run is handed out. */
static void withdraw(struct run *run, error *cause)
{
    (void) under(cause, "no output of this run is handed out, since it has no receipt");
    run->fault = *cause;
    run->evidence.lost = true;
    run->evidence.exited = false;
    run->verdict = (struct verdict){ RUN_LOST, FAULT_GLOVEBOX, LIMITS };
    run->files_are_lost = true;
    finalize_free(run);
    collector_discard(&run->collector);
    connection_log_done(&run->connections);
}

static void prove(struct run *run)
{
    error err;
    if (run_write_receipt(run, &err) < 0)
        withdraw(run, &err);
}

static void take_exit(struct run *run)
{
    if (!run->collector.has_exited)
        return;
    run->evidence.exited = true;
    run->evidence.ends_by_kill = !run->kind->is_cell && run->collector.running != ID_COMPILER;
    run->evidence.exit_code = run->collector.exited.exit_code;
    run->evidence.signal = run->collector.exited.signal;
}

void run_settle(struct run *run)
{
    error err;
    if (run->is_judged)
        return;
    run->is_judged = true;
    output_check_settle(run);
    if (run->started_us != 0 && run->ended_us == 0)
        run->ended_us = now_us();
    gather_hits(run);
    gather_connections(run);
    take_exit(run);
    run->verdict = judge(run);
    if (!output_check_has_withheld(run))
        return;
    if (run_seal(run, &err) < 0)
        withdraw(run, &err);
    output_check_blank(run);
}

static void close_output(struct run *run)
{
    if (run->output_check)
        run->runs->stages->close_output(run);
}

static void conclude(struct run *run)
{
    if (run->check)
        run->runs->stages->abandon_check(run);
    close_output(run);
    run_settle(run);
    run->done_us = now_us();
    run_set_state(run, RUN_DONE);
    prove(run);
    result_write(run, &run->result);
    bytes_fit(&run->result);
    finalize_free(run);
}

/* The next stage needs no sandbox of the run, and may need its slot. */
static void give_back(struct run *run)
{
    struct sandbox *sandbox = run->sandbox;
    if (run->state == RUN_GATING)
        return;
    run_set_state(run, RUN_GATING);
    if (sandbox)
        run->leftovers_are_known = counters_count(sandbox_groups(sandbox), &run->leftovers);
    run->sandbox = NULL;
    runs_leave(run);
    if (sandbox)
        pool_return(run->runs->pool, sandbox);
}

static void log_end(const struct run *run)
{
    log_event(
        RUN_ENDED, TEXT("run", run->id), TEXT("request", run->request_id),
        TEXT("key", run->account->key.id),
        TEXT("policy", run->plan.policy ? run->plan.policy->name : ""),
        TEXT("status", outcome_status_name(run->verdict.status)),
        TEXT("limit", run->verdict.status == RUN_LIMIT ? limit_rows[run->verdict.limit].name : ""),
        COUNT("queued_us", run_queued_us(run)), COUNT("took_us", run->done_us - run->submitted_us),
        COUNT("cpu_us", run->counters.cpu_us));
}

static void write_files(void *user)
{
    struct run *run = user;
    collector_write(&run->collector);
}

/* An answer must not name a file that does not exist: if the disk refused a file, the run is
 * lost. */
static void files_are_written(void *user)
{
    struct run *run = user;
    bool is_at_end = run->awaits_files;
    error err;
    run->is_writing = run->awaits_files = false;
    if (collector_keep(&run->collector, &err) < 0) {
        run->is_collected = false;
        sandbox_kill(run->sandbox, &err); /* the run is lost */
    }
    if (is_at_end)
        run_finish(run);
    else if (err.code == ERR_NONE)
        sandbox_hear(run->sandbox, true);
}

void run_write_files(struct run *run)
{
    run->is_writing = true;
    run->writing = (struct disk_job){ write_files, files_are_written, run, NULL };
    sandbox_hear(run->sandbox, false);
    disk_worker_do(run->runs->loop, &run->writing);
}

/* Answers first, then returns the sandbox: the caller need not wait for its end. */
void run_finish(struct run *run)
{
    if (run->state == RUN_DONE || finalize_is_under_way(run))
        return;
    if (run->is_writing || run->collector.unwritten > 0) {
        run->awaits_files = true;
        if (!run->is_writing)
            run_write_files(run);
        return;
    }
    if (run->state < RUN_GATING && run->is_collected && output_check_is_due(run)) {
        give_back(run);
        run->runs->stages->compare_output(run, run_finish);
        return;
    }
    if ((run->state >= RUN_RUNNING || run->kind->is_cell) && finalize_is_due(run)) {
        close_output(run);
        give_back(run);
        finalize_begin(run, run_finish);
        return;
    }
    conclude(run);
    struct sandbox *sandbox = run->sandbox;
    run->sandbox = NULL;
    if (run->pending_lease)
        pool_abandon(run->pending_lease);
    run->pending_lease = NULL;
    runs_ended(run->runs, run);
    if (sandbox)
        pool_return(run->runs->pool, sandbox);
    if (!run->kind->is_cell)
        log_end(run);
}
