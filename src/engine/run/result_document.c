/* result_document.c - the result contract: every field, always, in this order. Every door maps from
 * it; the names are frozen by result_document_test.c. */
#include "base/table.h"
#include "engine/network/connection_document.h"
#include "engine/network/egress_client.h"
#include "engine/run/run.h"
#include "model/errors.h"
#include "model/walls.h"
#include "policy/address.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const unit_names[] = {
    [UNIT_COUNT] = "count", [UNIT_BYTES] = "bytes", [UNIT_MSEC] = "ms", [UNIT_MILLI] = "cpus"
};

static uint64_t between_ms(int64_t from_us, int64_t to_us)
{
    return from_us != 0 && to_us > from_us ? (uint64_t) (to_us - from_us) / 1000 : 0;
}

static uint64_t output_total(const struct run *run)
{
    uint64_t one = run->collector.output[0].total;
    uint64_t other = run->collector.output[1].total;
    return one > other ? one : other;
}

uint64_t run_used(const struct run *run, enum limit_id limit)
{
    switch (limit) {
    case LIMIT_wall:
        return between_ms(run->started_us, run->ended_us);
    case LIMIT_cpu:
        return run->counters.cpu_us / 1000;
    case LIMIT_memory:
        return run->counters.memory_peak_bytes;
    case LIMIT_processes:
        return run->counters.processes_peak;
    case LIMIT_disk:
        return run->collector.measured.disk_peak_bytes;
    case LIMIT_inodes:
        return run->collector.measured.inodes_peak;
    case LIMIT_output:
        return collector_is_flood(&run->collector) ? run->collector.results_told
                                                   : output_total(run);
    case LIMIT_artifacts:
        return run->collector.file_bytes;
    case LIMIT_artifact_files:
        return run->collector.artifact_count;
    case LIMIT_cpus:
    case LIMIT_disk_read_rate:
    case LIMIT_disk_write_rate:
    case LIMIT_open_files:
    case LIMITS:
        break;
    }
    return 0;
}

/* A machine that gave it no processor is not cured by more time. */
static void tell_idleness(const struct run *run, enum limit_id limit, char *text, size_t size)
{
    uint64_t cpu_us = run->counters.cpu_us;
    size_t length = strlen(text);
    if (limit != LIMIT_wall || cpu_us == 0 || cpu_us / 1000 >= run_used(run, limit) / 4)
        return;
    (void) snprintf(text + length, size - length,
                    "; it used %" PRIu64
                    " ms of processor time; for the rest it slept, waited, or got no processor",
                    cpu_us / 1000);
}

static void write_message(const struct run *run, enum limit_id limit, struct bytes *out)
{
    static const char kept[] = "output so far and files in /workspace are kept";
    char text[512];
    if (limit == LIMIT_output && collector_is_flood(&run->collector))
        (void) snprintf(text, sizeof text,
                        "values and figures that the code shows exceeded %" PRIu64
                        " bytes, a bound that no policy changes; %s; save large ones as files",
                        run->collector.results_told, kept);
    else
        limit_sentence(limit, limit_get(&run->plan.limits, limit), run_used(run, limit),
                       limit_get(&run->plan.policy->maximum, limit), text, sizeof text);
    tell_idleness(run, limit, text, sizeof text);
    bool is_kept = !run->files_are_lost && !output_check_has_withheld(run);
    const char *claim = is_kept ? NULL : strstr(text, kept);
    if (!claim) {
        json_string_field(out, "message", text);
        return;
    }
    /* The sandbox had to be killed from outside, and its files went with it; or a policy withholds
     * them. */
    auto_bytes message = { 0 };
    bytes_add(&message, text, (size_t) (claim - text));
    bytes_add_text(&message, output_check_has_withheld(run)
                                 ? "output and files are withheld"
                                 : "output so far is kept, files in /workspace could not be taken");
    bytes_add_text(&message, claim + sizeof kept - 1);
    json_string_field(out, "message", bytes_text(&message));
}

static void write_limit(const struct run *run, struct bytes *out)
{
    enum limit_id limit = run->verdict.limit;
    json_key(out, "limit");
    if (run->verdict.status != RUN_LIMIT || limit >= LIMITS) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_string_field(out, "name", limit_rows[limit].name);
    json_count_field(out, "granted", limit_get(&run->plan.limits, limit));
    json_string_field(out, "unit", unit_names[limit_rows[limit].unit]);
    json_count_field(out, "used", run_used(run, limit));
    write_message(run, limit, out);
    json_close(out, '}');
}

static void write_hits(const struct run *run, struct bytes *out)
{
    enum limit_id hits[LIMITS];
    size_t count = outcome_hits(&run->evidence, hits);
    json_key(out, "limit_hits");
    json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_string_field(out, "name", limit_rows[hits[i]].name);
        json_count_field(out, "count", run->evidence.hits[hits[i]]);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_output(const struct run *run, struct bytes *out, const char *name, unsigned index)
{
    json_key(out, name);
    if (output_check_holds(run))
        json_text(out, "", 0);
    else
        settled_text(run, index, out);
}

static void write_results(const struct run *run, struct bytes *out)
{
    json_key(out, "results");
    json_open(out, '[');
    if (run->collector.results.size > 0 && !output_check_holds(run))
        json_raw(out, run->collector.results.data, run->collector.results.size);
    json_close(out, ']');
}

void result_write_error(const char *name, const char *value, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "name", name);
    json_string_field(out, "value", value);
    json_string_field(out, "traceback", "");
    json_key(out, "frames");
    json_open(out, '[');
    json_close(out, ']');
    json_close(out, '}');
}

/* What the code raised, or what glovebox itself could not do. */
static void write_error(const struct run *run, struct bytes *out)
{
    json_key(out, "error");
    if (run->fault.code != ERR_NONE) {
        result_write_error(run->evidence.pending  ? "ApprovalNeeded"
                           : run->evidence.denied ? "Denied"
                                                  : "GloveboxError",
                           run->fault.text, out);
    } else if (output_check_has_withheld(run)) {
        char text[400];
        output_check_print_withheld(run, text, sizeof text);
        result_write_error("Withheld", text, out);
    } else if (run->collector.failure.size > 0) {
        json_raw(out, run->collector.failure.data, run->collector.failure.size);
    } else {
        json_null(out);
    }
}

void result_write_artifact(const struct artifact *artifact, struct bytes *out)
{
    char url[96];
    (void) snprintf(url, sizeof url, "/v1/artifacts/sha256:%s", artifact->sha256);
    json_open(out, '{');
    json_string_field(out, "path", artifact->path);
    json_count_field(out, "bytes", artifact->size);
    json_string_field(out, "sha256", artifact->sha256);
    json_string_field(out, "mime", artifact->mime);
    json_string_field(out, "url", url);
    json_close(out, '}');
}

void result_write_denial(const struct denial *denial, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "layer", denial->layer);
    json_string_field(out, "target", denial->target);
    json_count_field(out, "count", denial->count);
    json_string_field(out, "message", denial->message);
    json_close(out, '}');
}

static void write_connection(const struct run *run, const struct egress_record *record,
                             struct bytes *out)
{
    struct connection_texts texts;
    struct fact_connection fact;
    connection_fact(record, run->plan.route, &texts, &fact);
    json_open(out, '{');
    connection_write(&fact, record->took_ms, out);
    json_close(out, '}');
}

static void write_network(const struct run *run, struct bytes *out)
{
    json_key(out, "network");
    json_open(out, '[');
    for (size_t i = 0; i < run->story.count; i++)
        write_connection(run, &run->story.records[i], out);
    json_close(out, ']');
}

static void write_lists(const struct run *run, struct bytes *out)
{
    const struct collector *collector = &run->collector;
    json_key(out, "artifacts");
    json_open(out, '[');
    for (size_t i = 0; i < collector->artifact_count && !output_check_holds(run); i++)
        result_write_artifact(&collector->artifacts[i], out);
    json_close(out, ']');

    json_key(out, "denials");
    json_open(out, '[');
    for (size_t i = 0; i < collector->denials.count; i++)
        result_write_denial(&collector->denials.rows[i], out);
    if (collector->denials.unlisted > 0) {
        struct denial others = { .layer = "other",
                                 .target = "more",
                                 .message = "further refusals that are not listed one by one",
                                 .count = collector->denials.unlisted };
        result_write_denial(&others, out);
    }
    json_close(out, ']');

    write_network(run, out);
    check_write(run->checks, out);
    if (run->output_check)
        run->runs->stages->write_output(run, out);
    else
        json_null_field(out, "gate");
}

static void write_usage(const struct run *run, struct bytes *out)
{
    static const char *const starts[] = { [START_BUILT] = "built", [START_PARKED] = "parked" };
    json_key(out, "usage");
    json_open(out, '{');
    json_count_field(out, "wall_ms", run_used(run, LIMIT_wall));
    json_count_field(out, "cpu_ms", run_used(run, LIMIT_cpu));
    json_count_field(out, "memory_peak_bytes", run_used(run, LIMIT_memory));
    json_count_field(out, "disk_peak_bytes", run_used(run, LIMIT_disk));
    json_count_field(out, "processes_peak", run_used(run, LIMIT_processes));
    json_count_field(out, "queued_ms", (uint64_t) run_queued_us(run) / 1000);
    json_string_field(out, "start", run->kind->start ? run->kind->start : starts[run->start]);
    json_close(out, '}');
}

static void write_limits(const struct limits *limits, struct bytes *out)
{
    json_key(out, "limits");
    json_open(out, '{');
    for (enum limit_id id = 0; id < LIMITS; id++) {
        uint64_t value = limit_get(limits, id);
        json_key(out, limit_rows[id].json_name);
        if (limit_rows[id].unit == UNIT_MILLI && value % 1000 != 0)
            bytes_print(out, "%" PRIu64 ".%03" PRIu64, value / 1000, value % 1000);
        else
            json_count(out, limit_rows[id].unit == UNIT_MILLI ? value / 1000 : value);
    }
    json_close(out, '}');
}

static void write_walls(struct bytes *out, const char *name, uint64_t walls)
{
    json_key(out, name);
    json_open(out, '[');
    for (unsigned wall = 0; wall < 64 && wall_name(wall); wall++)
        if (walls & wall_bit(wall))
            json_string(out, wall_name(wall));
    json_close(out, ']');
}

void result_write_place(const struct run_spec *plan, uint64_t walls, uint64_t degraded,
                        struct bytes *out)
{
    write_limits(&plan->limits, out);
    json_key(out, "policy");
    json_open(out, '{');
    json_string_field(out, "name", plan->policy->name);
    json_string_field(out, "digest", plan->policy->digest);
    json_close(out, '}');
    json_key(out, "template");
    json_open(out, '{');
    json_string_field(out, "name", plan->template->name);
    json_string_field(out, "digest", plan->template->digest);
    json_close(out, '}');
    json_key(out, "isolation");
    json_open(out, '{');
    json_string_field(out, "tier", "native");
    write_walls(out, "walls", walls);
    write_walls(out, "degraded", degraded);
    json_close(out, '}');
}

void result_write(const struct run *run, struct bytes *out)
{
    bool exited = run->evidence.exited;
    json_open(out, '{');
    json_string_field(out, "id", run->id);
    json_string_field(out, "status", outcome_status_name(run->verdict.status));
    json_string_field(out, "fault", outcome_fault_name(run->verdict.fault));
    json_key(out, "exit_code");
    if (exited && run->evidence.signal == 0)
        json_number(out, run->evidence.exit_code);
    else
        json_null(out);
    json_key(out, "signal");
    if (exited && run->evidence.signal != 0)
        json_number(out, run->evidence.signal);
    else
        json_null(out);
    write_limit(run, out);
    write_hits(run, out);
    write_output(run, out, "stdout", 0);
    write_output(run, out, "stderr", 1);
    json_key(out, "truncated");
    json_open(out, '{');
    json_count_field(out, "stdout_total_bytes", run->collector.output[0].total);
    json_count_field(out, "stderr_total_bytes", run->collector.output[1].total);
    json_null_field(out, "full_output");
    json_close(out, '}');
    write_results(run, out);
    write_error(run, out);
    write_lists(run, out);
    write_usage(run, out);
    result_write_place(&run->plan, run->walls, run->degraded, out);
    json_string_field(out, "approval", run->approval[0] ? run->approval : NULL);
    json_string_field(out, "receipt", run->receipt[0] ? run->receipt : NULL);
    if (run->kind->write)
        run->kind->write(run, out);
    json_close(out, '}');
}
