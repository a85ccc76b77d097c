/* run_metrics.c - updates the metrics when a run has ended. */
#include "engine/observe/metrics.h"
#include "engine/observe/metrics_limits.h"
#include "engine/observe/trace_span.h"
#include "engine/run/run.h"

static void count_gate(const struct run *run)
{
    if (!run->output_check || run->started_us == 0)
        return;
    metric_add(METRIC_GATED, run->output_check->outcome.verdict, 1);
    metric_add(METRIC_WITHHELD, 0, output_check_has_withheld(run));
}

static void count_harvest(const struct run *run)
{
    const struct collector *collector = &run->collector;
    for (unsigned i = 0; i < 2; i++)
        metric_add(METRIC_OUTPUT_BYTES, i, collector->output[i].total);
    for (size_t i = 0; i < collector->artifact_count && !output_check_holds(run); i++) {
        metric_add(METRIC_ARTIFACT_BYTES, 0, collector->artifacts[i].size);
        metric_add(METRIC_ARTIFACTS, 0, 1);
    }
    for (size_t i = 0; i < collector->denials.count; i++)
        metric_add(METRIC_DENIALS, collector->denials.rows[i].reason,
                   collector->denials.rows[i].count);
    metric_add(METRIC_DENIALS, DENIAL_UNLISTED, collector->denials.unlisted);
}

static void count_limits(const struct run *run)
{
    for (enum limit_id limit = 0; limit < LIMITS; limit++) {
        bool has_ended = run->verdict.status == RUN_LIMIT && run->verdict.limit == limit;
        bool is_met = run->evidence.hits[limit] > 0;
        metric_add(METRIC_LIMIT_HITS, limit, is_met);
        metric_add(METRIC_LIMIT_ENDS, limit, has_ended);
        if ((is_met || has_ended) && run->plan.policy)
            limit_counts_add(run->plan.policy->name, limit, has_ended);
    }
}

/* The trace span of the run: its times, and attributes from the result. */
static void trace(const struct run *run)
{
    const char *status = outcome_status_name(run->verdict.status);
    bool met_limit = run->verdict.status == RUN_LIMIT;
    const struct trace_attribute attributes[] = {
        { .key = "glovebox.run", .text = run->id },
        { .key = "glovebox.status", .text = status },
        { .key = "glovebox.limit", .text = met_limit ? limit_rows[run->verdict.limit].name : "" },
        { .key = "glovebox.queued_us", .number = (uint64_t) run_queued_us(run) },
        { .key = "glovebox.cpu_us", .number = run->counters.cpu_us },
        { .key = "glovebox.policy", .text = run->plan.policy ? run->plan.policy->name : "" },
        { .key = "glovebox.session", .text = run->session ? run->session : "" },
        { .key = "glovebox.key", .text = run->account->key.id },
    };
    const struct trace_span span = {
        .name = run->kind->is_cell ? "cell" : "run",
        .traceparent = run_traceparent(run),
        .took_us = run->done_us - run->submitted_us,
        .failure = run->verdict.status == RUN_OK ? NULL : status,
        .attributes = attributes,
        .count = sizeof attributes / sizeof *attributes,
    };
    trace_span_end(&span);
}

void metrics_run_ended(const struct run *run)
{
    unsigned start = run->kind->is_cell ? START_SESSION : (unsigned) run->start;
    metric_add(METRIC_RUNS, run->verdict.status, 1);
    metric_add(METRIC_STARTS, start, 1);
    metric_add(METRIC_FORKED, 0, !run->kind->is_cell && run->plan.set >= 0 && run->leased_us != 0);
    metric_add(METRIC_CPU_TIME, 0, run->counters.cpu_us);
    metric_observe(METRIC_RUN_TIME, start, run->done_us - run->submitted_us);
    metric_observe(METRIC_QUEUE_TIME, 0, run_queued_us(run));
    count_limits(run);
    count_gate(run);
    if (run->has_harvest)
        count_harvest(run);
    trace(run);
}
