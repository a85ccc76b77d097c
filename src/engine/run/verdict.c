/* verdict.c - what a run has come to: what it used and was refused is put together, judged,
 * proved by a receipt and written down as its result. */
#include "engine/run/run.h"

#include "engine/network/egress_client.h"
#include "engine/run/finalize.h"
#include "engine/session/contexts.h"

#include <stdio.h>

/* What was refused on the way out is a denial like any other. */
static void gather_way(struct run *run)
{
    struct denials *denials = &run->harvest.denials;
    if (run->way)
        way_tell(run->way, 0, &run->story);
    for (size_t i = 0; i < run->story.count; i++) {
        const struct egress_record *record = &run->story.records[i];
        char target[DENIAL_TARGET_SIZE];
        if (record->reason == EGRESS_ALLOWED || record->reason == EGRESS_ENDED)
            continue;
        (void) snprintf(target, sizeof target, "%.140s:%u", record->name[0] ? record->name : "?",
                        record->port);
        denials_add(denials, "network", target, network_reason_text(record->reason), 1);
    }
    if (run->story.unlisted > 0)
        denials_add(denials, "network", "more", "connections that are not listed one by one",
                    run->story.unlisted);
    if (run->story.failure)
        denials_add(denials, "network", "glovebox-egress", run->story.failure, 1);
}

static void gather_hits(struct run *run)
{
    uint64_t *hits = run->evidence.hits;
    const struct harvest *harvest = &run->harvest;
    hits[LIMIT_memory] += run->counters.memory_kills;
    hits[LIMIT_processes] += run->counters.processes_refused;
    if (harvest->has_measured) {
        hits[LIMIT_disk] += harvest->measured.disk_was_full != 0;
        hits[LIMIT_inodes] += harvest->measured.inodes_were_full != 0;
    }
    hits[LIMIT_output] += (uint64_t) output_is_truncated(&harvest->output[0]) +
                          (uint64_t) output_is_truncated(&harvest->output[1]);
    hits[LIMIT_artifacts] += harvest->artifacts_cut;
    hits[LIMIT_artifact_files] += harvest->artifact_files_cut;
    if (run->evidence.stopped_for < LIMITS && hits[run->evidence.stopped_for] == 0)
        hits[run->evidence.stopped_for] = 1;
}

/* A cell whose interpreter has gone did not come to its end, whatever the exit code says. */
static struct verdict judge(const struct run *run)
{
    struct verdict verdict = outcome_judge(&run->evidence);
    if (run->cell && run->cell->context_end && verdict.status == RUN_OK)
        verdict = (struct verdict){ .status = RUN_ERROR, .fault = FAULT_CODE, .limit = LIMITS };
    return verdict;
}

/* No answer without a receipt: of what cannot be written down nothing is handed out. */
static void withdraw(struct run *run, error *cause)
{
    (void) under(cause, "nothing of this run is handed out, since it has no receipt");
    run->fault = *cause;
    run->evidence.lost = true;
    run->evidence.exited = false;
    run->verdict = (struct verdict){ RUN_LOST, FAULT_GLOVEBOX, LIMITS };
    run->files_are_lost = true;
    settling_free(run);
    harvest_discard(&run->harvest);
    way_story_done(&run->story);
}

static void prove(struct run *run)
{
    error err;
    if (run_write_receipt(run, &err) < 0)
        withdraw(run, &err);
}

static void take_exit(struct run *run)
{
    if (!run->harvest.has_exited)
        return;
    run->evidence.exited = true;
    run->evidence.ends_by_kill = !run->cell && run->harvest.running != ID_COMPILER;
    run->evidence.exit_code = run->harvest.exited.exit_code;
    run->evidence.signal = run->harvest.exited.signal;
}

void run_settle(struct run *run)
{
    error err;
    if (run->is_judged)
        return;
    run->is_judged = true;
    gate_settle(run);
    if (run->started_us != 0 && run->ended_us == 0)
        run->ended_us = now_us();
    gather_hits(run);
    gather_way(run);
    take_exit(run);
    if (run->harvest.has_measured)
        run->runs->usually_measured = run->harvest.measured;
    run->verdict = judge(run);
    if (!gate_has_withheld(run))
        return;
    if (run_seal(run, &err) < 0)
        withdraw(run, &err);
    gate_blank(run);
}

void run_conclude(struct run *run)
{
    check_abandon(run);
    gate_close(run);
    run_settle(run);
    run->done_us = now_us();
    run->state = RUN_DONE;
    run->state_ends = (deadline){ 0 };
    (void) uv_timer_stop(&run->timer);
    prove(run);
    result_write(run, &run->result);
    settling_free(run);
}

/* While init ends what is left and collects, gloveboxd has nothing to do for this run. The receipt
 * of an ordinary end is signed meanwhile; it is written if every word of it turns out to be true,
 * and if not it was for nothing (receipt_foresee()). Not while others want the processor. */
void run_foresee_end(const struct run *run)
{
    if (run->runs->active + run->runs->queued > 1 || run->gate || settling_is_due(run) ||
        run->spec.network == POLICY_NETWORK_RULES)
        return;
    struct run likely = *run; /* what is behind its pointers is only read */
    likely.harvest.has_stopped = likely.harvest.has_measured = true;
    likely.harvest.measured = run->runs->usually_measured;
    gather_hits(&likely);
    take_exit(&likely);
    likely.verdict = judge(&likely);
    run_foresee_receipt(&likely);
}
