/* statement.c - writes receipts: a function for each part; canonical_writer.h sorts the members. */
#include "ledger/statement.h"

#include "base/table.h"
#include "ledger/list.h"
#include "ledger/statement_parts.h"
#include "model/walls.h"

#include <stdio.h>
#include <string.h>

/* --- parts ------------------------------------------------------------------------------------ */

/* True if only the number of rows is written: the receipt must be short, or has no rows. */
static bool is_unknown(const struct receipt_facts *facts, const void *rows, size_t count)
{
    return facts->is_minimal || (!rows && count > 0);
}

/* Returns  how many of them are listed. */
static size_t write_files(struct lists *lists, const struct receipt_facts *facts, const char *key,
                          const struct fact_file *files, size_t count)
{
    struct list list;
    if (is_unknown(facts, files, count)) {
        list_unknown(lists, key, key, count);
        return 0;
    }
    list_begin(lists, key, key, &list);
    for (size_t i = 0; i < count; i++) {
        part_file(lists->json, facts->nonce, key, &files[i]);
        list_row(&list);
    }
    list_end(&list);
    return list.listed;
}

static const char *const output_names[] = { "stdout", "stderr" };

static struct part_commitment commitment_of(const struct receipt_facts *facts, unsigned output)
{
    return (struct part_commitment){ facts->nonce, "outputs", output_names[output],
                                     facts->output[output].sha256 };
}

static void write_results(struct jcs *json, const struct receipt_facts *facts)
{
    const struct part_commitment what = { facts->nonce, "outputs", "results",
                                          facts->results.sha256 };
    if (!facts->results.sha256[0] || facts->sealed) {
        jcs_null_field(json, "results");
        return;
    }
    jcs_open_field(json, "results", '{');
    jcs_count_field(json, "bytes", facts->results.bytes);
    part_commitment(json, "commitment", &what);
    jcs_close(json, '}');
}

static void write_outputs(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "outputs", '{');
    write_results(json, facts);
    for (unsigned i = COUNT_OF(output_names); i-- > 0;) {
        const struct part_commitment what = commitment_of(facts, i);
        if (facts->sealed) {
            jcs_null_field(json, output_names[i]);
            continue;
        }
        jcs_open_field(json, output_names[i], '{');
        jcs_count_field(json, "bytes", facts->output[i].bytes);
        part_commitment(json, "commitment", &what);
        jcs_count_field(json, "kept_bytes", facts->output[i].kept);
        jcs_close(json, '}');
    }
    jcs_close(json, '}');
}

/* Keeps the JSON of a value that is mostly the same for the next execution. */
static void keep_value(struct bytes *kept, const struct jcs *json, size_t start)
{
    kept->size = 0;
    bytes_add(kept, json->out.data + start, json->out.size - start);
}

static void write_granted(struct jcs *json, const struct limits *granted,
                          struct statement_memory *memory)
{
    jcs_key(json, "granted");
    if (memory && memory->granted.size > 0 &&
        memcmp(&memory->limits, granted, sizeof *granted) == 0) {
        jcs_raw(json, memory->granted.data, memory->granted.size);
        return;
    }
    size_t start = json->out.size;
    jcs_open(json, '{');
    for (enum limit_id id = 0; id < LIMITS; id++) /* processors in thousandths: no fractions */
        jcs_count_field(json, limit_rows[id].name, limit_get(granted, id));
    jcs_close(json, '}');
    if (memory && !json->out.failed) {
        keep_value(&memory->granted, json, start);
        memory->limits = *granted;
    }
}

static void write_limits(struct jcs *json, const struct receipt_facts *facts,
                         const struct fact_place *machine)
{
    bool is_over = facts->verdict.status == RUN_LIMIT && facts->verdict.limit < LIMITS;
    jcs_open_field(json, "limits", '{');
    jcs_text_field(json, "ended_by", is_over ? limit_rows[facts->verdict.limit].name : NULL);
    jcs_open_field(json, "evidence", '[');
    for (size_t i = 0; i < facts->counter_count; i++) {
        const struct fact_counter *counter = &facts->counters[i];
        jcs_open(json, '{');
        jcs_text_field(json, "counter", counter->name);
        jcs_text_field(json, "file", counter->file);
        jcs_text_field(json, "group", counter->group);
        jcs_count_field(json, "value", counter->value);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
    write_granted(json, &facts->granted, machine->memory);
    jcs_open_field(json, "hits", '{');
    for (enum limit_id id = 0; id < LIMITS; id++)
        if (facts->hits[id] > 0)
            jcs_count_field(json, limit_rows[id].name, facts->hits[id]);
    jcs_close(json, '}');
    jcs_open_field(json, "used", '{');
    for (enum limit_id id = 0; id < LIMITS; id++)
        if (facts->used[id] > 0)
            jcs_count_field(json, limit_rows[id].name, facts->used[id]);
    jcs_close(json, '}');
    jcs_close(json, '}');
}

static void write_walls(struct jcs *json, const char *key, uint64_t walls)
{
    jcs_open_field(json, key, '[');
    for (unsigned wall = 0; wall < 64 && wall_name(wall); wall++)
        if (walls & wall_bit(wall))
            jcs_text(json, wall_name(wall), strlen(wall_name(wall)));
    jcs_close(json, ']');
}

static void write_isolation(struct jcs *json, const struct receipt_facts *facts,
                            const struct fact_place *machine)
{
    struct statement_memory *memory = machine->memory;
    jcs_key(json, "isolation");
    if (memory && memory->isolation.size > 0 && memory->walls == facts->walls &&
        memory->degraded == facts->degraded) {
        jcs_raw(json, memory->isolation.data, memory->isolation.size);
        return;
    }
    size_t start = json->out.size;
    jcs_open(json, '{');
    write_walls(json, "degraded", facts->degraded);
    jcs_text_field(json, "kernel", machine->kernel);
    jcs_open_field(json, "seccomp", '[');
    if (machine->filter.digest)
        part_digest(json, &machine->filter);
    if (machine->loopback_filter.digest)
        part_digest(json, &machine->loopback_filter);
    jcs_close(json, ']');
    jcs_key(json, "self_test");
    if (machine->self_test) {
        jcs_open(json, '{');
        jcs_integer_field(json, "at_ms", machine->self_test_at_ms);
        jcs_count_field(json, "failed", machine->self_test_failed);
        jcs_text_field(json, "sha256", machine->self_test);
        jcs_close(json, '}');
    } else {
        jcs_null(json);
    }
    jcs_text_field(json, "tier", "native");
    write_walls(json, "walls", facts->walls);
    jcs_close(json, '}');
    if (memory && !json->out.failed) {
        keep_value(&memory->isolation, json, start);
        memory->walls = facts->walls;
        memory->degraded = facts->degraded;
    }
}

static void write_denials(struct lists *lists, const struct receipt_facts *facts)
{
    static const char key[] = "denials";
    struct list list;
    if (is_unknown(facts, facts->denials, facts->denial_count)) {
        list_unknown(lists, key, key, facts->denial_count);
        return;
    }
    list_begin(lists, key, key, &list);
    for (size_t i = 0; i < facts->denial_count; i++) {
        jcs_open(lists->json, '{');
        jcs_count_field(lists->json, "count", facts->denials[i].count);
        jcs_text_field(lists->json, "layer", facts->denials[i].layer);
        jcs_text_field(lists->json, "target", facts->denials[i].target);
        jcs_close(lists->json, '}');
        list_row(&list);
    }
    list_end(&list);
}

static void write_claimed(struct jcs *json, const char *key, const char *text)
{
    jcs_text_field(json, key, text[0] ? text : NULL);
}

static void write_claim(struct jcs *json, const struct client_claim *claim)
{
    if (!claim) {
        jcs_null_field(json, "claimed");
        return;
    }
    jcs_open_field(json, "claimed", '{');
    write_claimed(json, "client", claim->client);
    write_claimed(json, "protocol", claim->protocol);
    write_claimed(json, "tool", claim->tool);
    write_claimed(json, "traceparent", claim->traceparent);
    write_claimed(json, "tracestate", claim->tracestate);
    write_claimed(json, "version", claim->version);
    jcs_close(json, '}');
}

static void write_checks(struct jcs *json, const struct receipt_facts *facts)
{
    if (!facts->check_decision) {
        jcs_null_field(json, "checks");
        return;
    }
    jcs_open_field(json, "checks", '{');
    jcs_text_field(json, "decision", facts->check_decision);
    jcs_open_field(json, "findings", '[');
    size_t listed = is_unknown(facts, facts->checks, facts->check_count) ? 0 : facts->check_count;
    for (size_t i = 0; i < listed; i++) {
        jcs_open(json, '{');
        jcs_text_field(json, "decision", facts->checks[i].decision);
        jcs_count_field(json, "line", facts->checks[i].line);
        jcs_text_field(json, "rule", facts->checks[i].rule);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
    jcs_count_field(json, "unlisted", facts->checks_unlisted + facts->check_count - listed);
    jcs_close(json, '}');
}

static void write_gate(struct jcs *json, const struct receipt_facts *facts)
{
    if (!facts->output_check_verdict) {
        jcs_null_field(json, "gate");
        return;
    }
    jcs_open_field(json, "gate", '{');
    jcs_text_field(json, "expectation", facts->output_check_expectation);
    jcs_open_field(json, "findings", '[');
    size_t listed = is_unknown(facts, facts->output_check, facts->output_check_count)
                        ? 0
                        : facts->output_check_count;
    for (size_t i = 0; i < listed; i++) {
        jcs_open(json, '{');
        jcs_count_field(json, "line", facts->output_check[i].line);
        jcs_text_field(json, "rule", facts->output_check[i].rule);
        jcs_text_field(json, "where", facts->output_check[i].where);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
    jcs_count_field(json, "unlisted",
                    facts->output_check_unlisted + facts->output_check_count - listed);
    jcs_text_field(json, "verdict", facts->output_check_verdict);
    jcs_key(json, "withheld");
    jcs_flag(json, facts->output_check_withheld);
    jcs_close(json, '}');
}

static void write_outcome(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "outcome", '{');
    part_known(json, "exit_code", facts->exited && facts->signal == 0, facts->exit_code);
    jcs_text_field(json, "fault", outcome_fault_name(facts->verdict.fault));
    part_known(json, "signal", facts->exited && facts->signal != 0, facts->signal);
    jcs_text_field(json, "status", outcome_status_name(facts->verdict.status));
    jcs_close(json, '}');
}

static void write_connection(struct jcs *json, const struct fact_connection *connection)
{
    jcs_open(json, '{');
    jcs_text_field(json, "address", connection->address);
    part_moment(json, "began_ms", connection->began_ms);
    jcs_text_field(json, "decision", connection->decision);
    jcs_text_field(json, "host", connection->host);
    jcs_flag_field(json, "intercepted", connection->intercepted);
    jcs_text_field(json, "method", connection->method);
    jcs_text_field(json, "path", connection->path);
    jcs_count_field(json, "port", connection->port);
    jcs_text_field(json, "reason", connection->reason);
    jcs_count_field(json, "received", connection->received);
    jcs_text_field(json, "rule", connection->rule);
    jcs_count_field(json, "sent", connection->sent);
    jcs_count_field(json, "status", connection->status);
    jcs_close(json, '}');
}

static void write_connections(struct lists *lists, const struct receipt_facts *facts)
{
    static const char key[] = "network";
    struct list list = { 0 };
    if (is_unknown(facts, facts->connections, facts->connection_count)) {
        list_unknown(lists, key, key, facts->connection_count);
    } else {
        list_begin(lists, key, key, &list);
        for (size_t i = 0; i < facts->connection_count; i++) {
            write_connection(lists->json, &facts->connections[i]);
            list_row(&list);
        }
        list_end(&list);
    }
    jcs_count_field(lists->json, "network_unlisted",
                    facts->connections_unlisted + facts->connection_count - list.listed);
}

static void write_times(struct jcs *json, const struct receipt_facts *facts, int64_t written_ms)
{
    jcs_open_field(json, "times", '{');
    part_moment(json, "ended_ms", facts->ended_ms);
    part_moment(json, "started_ms", facts->started_ms);
    part_moment(json, "submitted_ms", facts->submitted_ms);
    part_moment(json, "written_ms", written_ms);
    jcs_close(json, '}');
}

static void write_leftovers(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "leftovers", '{');
    part_known(json, "processes", facts->leftovers_are_known, (int64_t) facts->leftovers);
    jcs_flag_field(json, "stopped", facts->was_stopped);
    jcs_close(json, '}');
}

static void write_variables(struct lists *lists, const struct receipt_facts *facts)
{
    static const char key[] = "environment_names";
    struct list list;
    if (is_unknown(facts, facts->variables, facts->variable_count)) {
        list_unknown(lists, key, key, facts->variable_count);
        return;
    }
    list_begin(lists, key, key, &list);
    for (size_t i = 0; i < facts->variable_count; i++) {
        jcs_text(lists->json, facts->variables[i], strlen(facts->variables[i]));
        list_row(&list);
    }
    list_end(&list);
}

static void write_subject(struct jcs *json, const struct receipt_facts *facts, const char *group,
                          const struct fact_file *file, const char *name)
{
    const struct part_commitment what = { facts->nonce, group, file->name, file->sha256 };
    part_subject(json, name, &what);
}

/* Subjects of artifacts are named by their row in predicate.artifacts, which has the name. */
static void write_subjects(struct jcs *json, const struct receipt_facts *facts, size_t artifacts)
{
    char name[32];
    jcs_open_field(json, "subject", '[');
    for (size_t i = 0; facts->inputs && i < facts->input_count; i++)
        if (strcmp(facts->inputs[i].name, "code") == 0 ||
            strcmp(facts->inputs[i].name, "command") == 0)
            write_subject(json, facts, "inputs", &facts->inputs[i], facts->inputs[i].name);
    for (unsigned i = 0; i < COUNT_OF(output_names) && !facts->sealed; i++) {
        const struct part_commitment what = commitment_of(facts, i);
        if (what.sha256[0])
            part_subject(json, output_names[i], &what);
    }
    for (size_t i = 0; i < artifacts; i++) {
        (void) snprintf(name, sizeof name, "artifact/%zu", i);
        write_subject(json, facts, "artifacts", &facts->artifacts[i], name);
    }
    jcs_close(json, ']');
}

void statement_memory_done(struct statement_memory *memory)
{
    bytes_done(&memory->isolation);
    bytes_done(&memory->granted);
}

/* --- the receipt ------------------------------------------------------------------------------ */

static size_t write_predicate(struct lists *lists, const struct receipt_facts *facts,
                              const struct fact_place *machine, const struct statement_place *place)
{
    struct jcs *json = lists->json;
    jcs_open_field(json, "predicate", '{');
    jcs_text_field(json, "approval", facts->approval);
    size_t artifacts =
        write_files(lists, facts, "artifacts", facts->artifacts, facts->artifact_count);
    part_caller(json, facts);
    write_checks(json, facts);
    write_claim(json, facts->claim);
    write_denials(lists, facts);
    write_variables(lists, facts);
    part_execution(json, facts);
    write_gate(json, facts);
    jcs_text_field(json, "glovebox", machine->version);
    jcs_text_field(json, "id", place->id);
    (void) write_files(lists, facts, "inputs", facts->inputs, facts->input_count);
    write_isolation(json, facts, machine);
    write_leftovers(json, facts);
    write_limits(json, facts, machine);
    part_place(json, place);
    write_connections(lists, facts);
    write_outcome(json, facts);
    write_outputs(json, facts);
    part_named(json, "policy", &facts->policy);
    jcs_text_field(json, "sealed", facts->sealed);
    lists_write(lists);
    part_named(json, "template", &facts->template);
    write_times(json, facts, place->at_ms);
    jcs_close(json, '}');
    return artifacts;
}

int statement_write(const struct receipt_facts *facts, const struct fact_place *machine,
                    const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    struct lists lists = { .json = &json, .bytes_max = LIST_BYTES_MAX };
    (void) bytes_reserve(&json.out, 8192);
    jcs_open(&json, '{');
    jcs_text_field(&json, "_type", STATEMENT_TYPE);
    size_t artifacts = write_predicate(&lists, facts, machine, place);
    jcs_text_field(&json, "predicateType", PREDICATE_RUN);
    write_subjects(&json, facts, artifacts);
    jcs_close(&json, '}');
    return part_give(&json, out, err);
}
