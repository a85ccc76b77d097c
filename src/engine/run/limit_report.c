/* limit_report.c - what a run used of its limits, and the message about the limit that ended it. */
#include "engine/run/run.h"
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
    uint64_t one = run->collector.output[0].total, other = run->collector.output[1].total;
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

/* If the run got little processor time, more wall-clock time may not help: says so. */
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

static void write_message(const struct run *run, enum limit_id limit, bool is_withheld,
                          struct bytes *out)
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
    bool is_kept = !run->files_are_lost && !is_withheld;
    const char *claim = is_kept ? NULL : strstr(text, kept);
    if (!claim) {
        json_string_field(out, "message", text);
        return;
    }
    /* The sandbox had to be killed from outside, and its files are lost; or a policy withholds
     * them. */
    auto_bytes message = { 0 };
    bytes_add(&message, text, (size_t) (claim - text));
    bytes_add_text(&message, is_withheld
                                 ? "output and files are withheld"
                                 : "output so far is kept, files in /workspace could not be read");
    bytes_add_text(&message, claim + sizeof kept - 1);
    json_string_field(out, "message", bytes_text(&message));
}

void result_write_limit(const struct run *run, bool is_withheld, struct bytes *out)
{
    enum limit_id limit = run->verdict.limit;
    if (run->verdict.status != RUN_LIMIT || limit >= LIMITS) {
        json_null(out);
        return;
    }
    json_open(out, '{');
    json_string_field(out, "name", limit_rows[limit].name);
    json_count_field(out, "granted", limit_get(&run->plan.limits, limit));
    json_string_field(out, "unit", unit_names[limit_rows[limit].unit]);
    json_count_field(out, "used", run_used(run, limit));
    write_message(run, limit, is_withheld, out);
    json_close(out, '}');
}
