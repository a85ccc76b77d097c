/* result_document.c - the result contract: all fields, always, in this order. Every door uses it;
 * result_document_test.c checks the names. */
#include "engine/network/connection_document.h"
#include "engine/network/egress_client.h"
#include "engine/run/run.h"
#include "model/walls.h"
#include "json/writer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void write_limit_hits(const struct run *run, struct bytes *out)
{
    enum limit_id hits[LIMITS];
    size_t count = outcome_hits(&run->evidence, hits);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        json_open(out, '{');
        json_string_field(out, "name", limit_rows[hits[i]].name);
        json_count_field(out, "count", run->evidence.hits[hits[i]]);
        json_close(out, '}');
    }
    json_close(out, ']');
}

static void write_output(const struct run *run, unsigned index, struct bytes *out)
{
    if (output_check_holds(run))
        json_text(out, "", 0);
    else
        settled_text(run, index, out);
}

static void write_limit(const struct run *run, struct bytes *out)
{
    result_write_limit(run, output_check_has_withheld(run), out);
}

static void write_stdout(const struct run *run, struct bytes *out)
{
    write_output(run, 0, out);
}

static void write_stderr(const struct run *run, struct bytes *out)
{
    write_output(run, 1, out);
}

static void write_text(const struct run *run, struct bytes *out)
{
    const struct collector *collector = &run->collector;
    const struct display_data_span *text = &collector->text;
    if (text->is_there && text->end <= collector->results.size && !output_check_holds(run))
        json_raw(out, collector->results.data + text->at, text->end - text->at);
    else
        json_null(out);
}

static void write_results(const struct run *run, struct bytes *out)
{
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
    json_open_field(out, "frames", '[');
    json_close_all(out, "]}");
}

/* The exception of the code, or a failure of glovebox itself. */
static void write_error(const struct run *run, struct bytes *out)
{
    if (run->fault.code != ERR_NONE) {
        result_write_error(run->evidence.lost      ? "GloveboxError"
                           : run->evidence.pending ? "ApprovalNeeded"
                           : run->evidence.denied  ? "Denied"
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
    json_open(out, '[');
    for (size_t i = 0; i < run->connections.count; i++)
        write_connection(run, &run->connections.records[i], out);
    json_close(out, ']');
}

static void write_artifacts(const struct run *run, struct bytes *out)
{
    const struct collector *collector = &run->collector;
    json_open(out, '[');
    for (size_t i = 0; i < collector->artifact_count && !output_check_holds(run); i++)
        result_write_artifact(&collector->artifacts[i], out);
    json_close(out, ']');
}

static void write_denials(const struct run *run, struct bytes *out)
{
    const struct denials *denials = &run->collector.denials;
    json_open(out, '[');
    for (size_t i = 0; i < denials->count; i++)
        result_write_denial(&denials->rows[i], out);
    if (denials->unlisted > 0) {
        struct denial others = { .layer = "other",
                                 .target = "more",
                                 .message = "further refusals that are not listed",
                                 .count = denials->unlisted };
        result_write_denial(&others, out);
    }
    json_close(out, ']');
}

static void write_checks(const struct run *run, struct bytes *out)
{
    check_write(run->checks, out);
}

static void write_gate(const struct run *run, struct bytes *out)
{
    if (run->output_check)
        run->runs->stages->write_output(run, out);
    else
        json_null(out);
}

static void write_usage(const struct run *run, struct bytes *out)
{
    static const char *const starts[] = { [START_BUILT] = "built", [START_PARKED] = "parked" };
    json_open(out, '{');
#define USAGE(name, limit, text) json_count_field(out, #name, run_used(run, LIMIT_##limit));
#include "model/result_fields.def"
    json_count_field(out, "queued_ms", (uint64_t) run_queued_us(run) / 1000);
    json_string_field(out, "start", run->kind->start ? run->kind->start : starts[run->start]);
    json_close(out, '}');
}

static void write_granted(const struct limits *limits, struct bytes *out)
{
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

static void write_named(const char *name, const char *digest, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "name", name);
    json_string_field(out, "digest", digest);
    json_close(out, '}');
}

static void write_walls(struct bytes *out, const char *name, uint64_t walls)
{
    json_open_field(out, name, '[');
    for (unsigned wall = 0; wall < 64 && wall_name(wall); wall++)
        if (walls & wall_bit(wall))
            json_string(out, wall_name(wall));
    json_close(out, ']');
}

static void write_walls_of(uint64_t walls, uint64_t degraded, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "tier", "native");
    write_walls(out, "walls", walls);
    write_walls(out, "degraded", degraded);
    json_close(out, '}');
}

void result_write_place(const struct run_spec *plan, uint64_t walls, uint64_t degraded,
                        struct bytes *out)
{
    json_key(out, "limits");
    write_granted(&plan->limits, out);
    json_key(out, "policy");
    write_named(plan->policy->name, plan->policy->digest, out);
    json_key(out, "template");
    write_named(plan->template->name, plan->template->digest, out);
    json_key(out, "isolation");
    write_walls_of(walls, degraded, out);
}

static void write_limits(const struct run *run, struct bytes *out)
{
    write_granted(&run->plan.limits, out);
}

static void write_policy(const struct run *run, struct bytes *out)
{
    write_named(run->plan.policy->name, run->plan.policy->digest, out);
}

static void write_template(const struct run *run, struct bytes *out)
{
    write_named(run->plan.template->name, run->plan.template->digest, out);
}

static void write_isolation(const struct run *run, struct bytes *out)
{
    write_walls_of(run->walls, run->degraded, out);
}

static void write_id(const struct run *run, struct bytes *out)
{
    json_string(out, run->id);
}

static void write_status(const struct run *run, struct bytes *out)
{
    json_string(out, outcome_status_name(run->verdict.status));
}

static void write_fault(const struct run *run, struct bytes *out)
{
    json_string(out, outcome_fault_name(run->verdict.fault));
}

static void write_number_or_null(bool is_known, int number, struct bytes *out)
{
    if (is_known)
        json_number(out, number);
    else
        json_null(out);
}

static void write_exit_code(const struct run *run, struct bytes *out)
{
    write_number_or_null(run->evidence.exited && run->evidence.signal == 0, run->evidence.exit_code,
                         out);
}

static void write_signal(const struct run *run, struct bytes *out)
{
    write_number_or_null(run->evidence.exited && run->evidence.signal != 0, run->evidence.signal,
                         out);
}

static void write_totals(uint64_t stdout_bytes, uint64_t stderr_bytes, struct bytes *out)
{
    json_open(out, '{');
    json_count_field(out, "stdout_total_bytes", stdout_bytes);
    json_count_field(out, "stderr_total_bytes", stderr_bytes);
    json_null_field(out, "full_output");
    json_close(out, '}');
}

static void write_truncated(const struct run *run, struct bytes *out)
{
    write_totals(run->collector.output[0].total, run->collector.output[1].total, out);
}

static void write_approval(const struct run *run, struct bytes *out)
{
    json_string(out, run->approval[0] ? run->approval : NULL);
}

static void write_receipt(const struct run *run, struct bytes *out)
{
    json_string(out, run->receipt[0] ? run->receipt : NULL);
}

void result_write(const struct run *run, struct bytes *out)
{
    json_open(out, '{');
#define RESULT(name, type, lost, text) \
    json_key(out, #name);              \
    write_##name(run, out);
#include "model/result_fields.def"
    if (run->kind->write)
        run->kind->write(run, out);
    json_close(out, '}');
}

static void write_lost_usage(struct bytes *out)
{
    json_open(out, '{');
#define USAGE(name, limit, text) json_count_field(out, #name, 0);
#include "model/result_fields.def"
    json_count_field(out, "queued_ms", 0);
    json_string_field(out, "start", "built");
    json_close(out, '}');
}

/* A field for which its row has no value in a lost run. */
static void write_lost_field(const char *name, const struct lost_result *lost, struct bytes *out)
{
    if (strcmp(name, "id") == 0)
        json_string(out, lost->id);
    else if (strcmp(name, "truncated") == 0)
        write_totals(0, 0, out);
    else if (strcmp(name, "error") == 0)
        result_write_error("GloveboxError",
                           "gloveboxd ended while this run was open; its output and files are "
                           "lost, and it was not run again",
                           out);
    else if (strcmp(name, "usage") == 0)
        write_lost_usage(out);
    else if (strcmp(name, "policy") == 0)
        write_named(lost->policy.name, lost->policy.digest, out);
    else if (strcmp(name, "template") == 0)
        write_named(lost->template.name, lost->template.digest, out);
    else if (strcmp(name, "receipt") == 0)
        json_string(out, lost->receipt);
}

void result_write_lost(const struct lost_result *lost, struct bytes *out)
{
    static const struct {
        const char *name, *lost;
    } rows[] = {
#define RESULT(name, type, lost, text) { #name, lost },
#include "model/result_fields.def"
    };
    json_open(out, '{');
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        json_key(out, rows[i].name);
        if (rows[i].lost)
            json_raw(out, rows[i].lost, strlen(rows[i].lost));
        else
            write_lost_field(rows[i].name, lost, out);
    }
    json_close(out, '}');
}
