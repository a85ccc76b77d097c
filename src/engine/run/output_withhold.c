/* output_withhold.c - withholds output that is not as expected, if the policy says so (`on_fault:
 * withhold`). Nothing of it is reported before the verdict: no events, and artifacts have no owner
 * in the blob store. A withheld run reports nothing else: how it ended, and when, could encode what
 * it printed. */
#include "engine/run/output_findings.h"

#include "base/clock.h"
#include "engine/network/egress_client.h"
#include "engine/run/finalize.h"
#include "engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool output_check_holds(const struct run *run)
{
    return run->output_check && run->output_check->withholds && !run->output_check->is_released;
}

struct blob_owner output_check_owner(const struct run *run)
{
    const char *payer = run->account->owner;
    return (struct blob_owner){ output_check_holds(run) ? run->output_check->owner : payer, payer };
}

static void release(struct run *run)
{
    struct output_check *output_check = run->output_check;
    error err;
    for (size_t i = 0; i < run->collector.artifact_count; i++)
        if (blob_hand_over(run->runs->blobs, output_check->owner,
                           run->collector.artifacts[i].sha256, run->account->owner, &err) < 0) {
            output_check_give_up(&output_check->outcome, err.text);
            return;
        }
    run->collector.owner.name = run->account->owner;
    output_check->is_released = true;
}

static void withhold(struct run *run)
{
    for (size_t i = 0; i < run->collector.artifact_count; i++)
        blob_forget(run->runs->blobs, run->output_check->owner, run->collector.artifacts[i].sha256);
}

void output_check_settle(struct run *run)
{
    if (!output_check_holds(run))
        return;
    if (run->output_check->outcome.verdict == OUTPUT_CHECK_PASSED)
        release(run);
    if (!run->output_check->is_released)
        withhold(run);
}

bool output_check_has_withheld(const struct run *run)
{
    return output_check_holds(run) && run->started_us != 0;
}

/* Clears what is withheld. `lost` and `cancelled` stay if they are the verdict, since the program
 * causes neither. But a run that a limit has ended and whose init did not answer is lost, too: then
 * the verdict is the limit, which the program can choose. */
void output_check_blank(struct run *run)
{
    struct output_check_outcome *outcome = &run->output_check->outcome;
    bool is_told = run->verdict.status == RUN_LOST || run->verdict.status == RUN_CANCELLED;
    finalize_free(run);
    collector_done(&run->collector);
    connection_log_done(&run->connections);
    /* The time is charged in any case; that of a cell is charged with its session. */
    run->checks_cpu_us += run->kind->is_cell ? 0 : run->counters.cpu_us;
    run->counters = (struct counters){ 0 };
    run->leftovers_are_known = false;
    run->files_are_lost = false;
    run->ended_us = 0;
    outcome->verdict = OUTPUT_CHECK_FAILED;
    outcome->count = outcome->unlisted = 0;
    outcome->took_ms = 0;
    outcome->failure[0] = '\0';
    run->evidence.exited = false;
    run->evidence.exit_code = run->evidence.signal = 0;
    memset(run->evidence.hits, 0, sizeof run->evidence.hits);
    if (is_told)
        return;
    run->evidence.stopped_for = LIMITS;
    run->evidence.lost = false;
    run->fault = (error){ 0 };
    run->verdict = (struct verdict){ RUN_ERROR, FAULT_POLICY, LIMITS };
}

enum run_state run_state_shown(const struct run *run)
{
    bool is_ending = run->state > RUN_RUNNING && run->state < RUN_DONE;
    return is_ending && run->output_check && run->output_check->withholds ? RUN_RUNNING
                                                                          : run->state;
}

enum { HELD_BEYOND_MS = 1000, HELD_STEP_MS = 10000 };

struct output_check_hold {
    uv_timer_t timer;
    struct run *run;
    output_check_told *told;
};

static void free_hold(uv_handle_t *timer)
{
    free(timer->data);
}

void output_check_hold_end(struct output_check *output_check)
{
    if (output_check->hold)
        uv_close((uv_handle_t *) &output_check->hold->timer, free_hold);
    output_check->hold = NULL;
}

static void on_moment(uv_timer_t *timer)
{
    const struct output_check_hold *hold = timer->data;
    struct run *run = hold->run;
    output_check_told *told = hold->told;
    output_check_hold_end(run->output_check);
    told(run);
}

/* The time left until the answer: the granted wall-clock time from the beginning, and the time for
 * ending and comparing; if that was not enough, further steps. */
static int64_t moment_left_ms(const struct run *run)
{
    int64_t max_ms = (int64_t) run->plan.limits.wall + HELD_BEYOND_MS;
    int64_t spent_ms = (now_us() - run->started_us) / 1000, left_ms = max_ms - spent_ms;
    return left_ms >= 0 ? left_ms : HELD_STEP_MS - (-left_ms % HELD_STEP_MS);
}

bool output_check_hold(struct run *run, output_check_told *told)
{
    if (!run->output_check->withholds ||
        run->output_check->outcome.verdict == OUTPUT_CHECK_PASSED || run->runs->is_closing)
        return false;
    run_settle(run); /* frees its output at once */
    struct output_check_hold *hold = calloc(1, sizeof *hold);
    if (!hold)
        return false;
    hold->run = run;
    hold->told = told;
    hold->timer.data = hold;
    run->output_check->hold = hold;
    (void) uv_timer_init(run->runs->loop, &hold->timer);
    uv_update_time(run->runs->loop);
    (void) uv_timer_start(&hold->timer, on_moment, (uint64_t) moment_left_ms(run), 0);
    return true;
}

void output_check_print_withheld(const struct run *run, char *text, size_t size)
{
    (void) snprintf(text, size,
                    "policy '%s' hands output over only if it is as expected; it is not, and all "
                    "that the program could choose is withheld. A key with scope audit can "
                    "open the receipt",
                    run->plan.policy->name);
}
