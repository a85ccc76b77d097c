/* statement.c - each part of a receipt is a function; jcs.h puts the members in order. */
#include "receipt/statement.h"

#include "base/table.h"
#include "model/walls.h"
#include "receipt/jcs.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

/* --- parts --------------------------------------------------------------------------------------
 */

static void write_digest(struct jcs *json, const struct fact_named *named)
{
    jcs_open(json, '{');
    jcs_text_field(json, "digest", named->digest);
    jcs_text_field(json, "name", named->name);
    jcs_close(json, '}');
}

static void write_named(struct jcs *json, const char *key, const struct fact_named *named)
{
    jcs_key(json, key);
    write_digest(json, named);
}

static void write_known(struct jcs *json, const char *key, bool is_known, int64_t value)
{
    if (is_known)
        jcs_integer_field(json, key, value);
    else
        jcs_null_field(json, key);
}

static void write_moment(struct jcs *json, const char *key, int64_t at_ms)
{
    write_known(json, key, at_ms > 0, at_ms);
}

static void write_files(struct jcs *json, const char *key, const struct fact_file *files,
                        size_t count)
{
    jcs_open_field(json, key, '[');
    for (size_t i = 0; i < count; i++) {
        jcs_open(json, '{');
        jcs_count_field(json, "bytes", files[i].bytes);
        jcs_text_field(json, "name", files[i].name);
        jcs_text_field(json, "sha256", files[i].sha256);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
}

static void write_outputs(struct jcs *json, const struct receipt_facts *facts)
{
    static const char *const names[] = { "stdout", "stderr" };
    jcs_open_field(json, "outputs", '{');
    jcs_key(json, "results");
    if (facts->results.sha256[0]) {
        jcs_open(json, '{');
        jcs_count_field(json, "bytes", facts->results.bytes);
        jcs_text_field(json, "sha256", facts->results.sha256);
        jcs_close(json, '}');
    } else {
        jcs_null(json);
    }
    for (size_t i = COUNT_OF(names); i-- > 0;) {
        const struct fact_output *output = &facts->output[i];
        jcs_open_field(json, names[i], '{');
        jcs_count_field(json, "bytes", output->bytes);
        jcs_count_field(json, "kept_bytes", output->kept);
        jcs_text_field(json, "sha256", output->sha256);
        jcs_close(json, '}');
    }
    jcs_close(json, '}');
}

/* A value that is the same for one execution after another is kept as it was written. */
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
    for (enum limit_id id = 0; id < LIMITS; id++) /* processors in thousandths: no fractions here */
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
        write_digest(json, &machine->filter);
    if (machine->loopback_filter.digest)
        write_digest(json, &machine->loopback_filter);
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

static void write_denials(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "denials", '[');
    for (size_t i = 0; i < facts->denial_count; i++) {
        jcs_open(json, '{');
        jcs_count_field(json, "count", facts->denials[i].count);
        jcs_text_field(json, "layer", facts->denials[i].layer);
        jcs_text_field(json, "target", facts->denials[i].target);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
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
    for (size_t i = 0; i < facts->check_count; i++) {
        jcs_open(json, '{');
        jcs_text_field(json, "decision", facts->checks[i].decision);
        jcs_count_field(json, "line", facts->checks[i].line);
        jcs_text_field(json, "rule", facts->checks[i].rule);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
    jcs_count_field(json, "unlisted", facts->checks_unlisted);
    jcs_close(json, '}');
}

static void write_gate(struct jcs *json, const struct receipt_facts *facts)
{
    if (!facts->gate_verdict) {
        jcs_null_field(json, "gate");
        return;
    }
    jcs_open_field(json, "gate", '{');
    jcs_text_field(json, "expectation", facts->gate_expectation);
    jcs_open_field(json, "findings", '[');
    for (size_t i = 0; i < facts->gate_count; i++) {
        jcs_open(json, '{');
        jcs_count_field(json, "line", facts->gate[i].line);
        jcs_text_field(json, "rule", facts->gate[i].rule);
        jcs_text_field(json, "where", facts->gate[i].where);
        jcs_close(json, '}');
    }
    jcs_close(json, ']');
    jcs_count_field(json, "unlisted", facts->gate_unlisted);
    jcs_text_field(json, "verdict", facts->gate_verdict);
    jcs_key(json, "withheld");
    jcs_flag(json, facts->gate_withheld);
    jcs_close(json, '}');
}

static void write_outcome(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "outcome", '{');
    write_known(json, "exit_code", facts->exited && facts->signal == 0, facts->exit_code);
    jcs_text_field(json, "fault", outcome_fault_name(facts->verdict.fault));
    write_known(json, "signal", facts->exited && facts->signal != 0, facts->signal);
    jcs_text_field(json, "status", outcome_status_name(facts->verdict.status));
    jcs_close(json, '}');
}

static void write_caller(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "caller", '{');
    jcs_text_field(json, "key", facts->key);
    jcs_text_field(json, "tenant", facts->tenant);
    jcs_close(json, '}');
}

static void write_execution(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "execution", '{');
    jcs_text_field(json, "context", facts->context);
    jcs_text_field(json, "id", facts->id);
    jcs_text_field(json, "kind", facts->kind);
    jcs_text_field(json, "language", facts->language);
    jcs_text_field(json, "session", facts->session);
    jcs_text_field(json, "start", facts->start);
    jcs_close(json, '}');
}

static void write_connections(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "network", '[');
    for (size_t i = 0; i < facts->connection_count; i++) {
        const struct fact_connection *connection = &facts->connections[i];
        jcs_open(json, '{');
        jcs_text_field(json, "address", connection->address);
        write_moment(json, "began_ms", connection->began_ms);
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
    jcs_close(json, ']');
    jcs_count_field(json, "network_unlisted", facts->connections_unlisted);
}

static void write_times(struct jcs *json, const struct receipt_facts *facts, int64_t written_ms)
{
    jcs_open_field(json, "times", '{');
    write_moment(json, "ended_ms", facts->ended_ms);
    write_moment(json, "started_ms", facts->started_ms);
    write_moment(json, "submitted_ms", facts->submitted_ms);
    write_moment(json, "written_ms", written_ms);
    jcs_close(json, '}');
}

static void write_leftovers(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "leftovers", '{');
    write_known(json, "processes", facts->leftovers_are_known, (int64_t) facts->leftovers);
    jcs_flag_field(json, "stopped", facts->was_stopped);
    jcs_close(json, '}');
}

static void write_variables(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "environment_names", '[');
    for (size_t i = 0; i < facts->variable_count; i++)
        jcs_text(json, facts->variables[i], strlen(facts->variables[i]));
    jcs_close(json, ']');
}

/* Which log, where in it, and the root of all records before: so every receipt vouches for the
 * history that it stands on. */
static void write_place(struct jcs *json, const struct statement_place *place)
{
    char root[SHA256_TEXT_SIZE];
    (void) sodium_bin2hex(root, sizeof root, place->before.root.bytes, MERKLE_HASH_SIZE);
    jcs_open_field(json, "log", '{');
    jcs_count_field(json, "index", place->before.size);
    jcs_text_field(json, "origin", place->origin);
    jcs_text_field(json, "root_before", root);
    jcs_close(json, '}');
}

static void write_subject(struct jcs *json, const char *prefix, const char *name,
                          const char *sha256)
{
    char whole[4352];
    (void) snprintf(whole, sizeof whole, "%s%s", prefix, name);
    jcs_open(json, '{');
    jcs_open_field(json, "digest", '{');
    jcs_text_field(json, "sha256", sha256);
    jcs_close(json, '}');
    jcs_text_field(json, "name", whole);
    jcs_close(json, '}');
}

static void write_subjects(struct jcs *json, const struct receipt_facts *facts)
{
    jcs_open_field(json, "subject", '[');
    for (size_t i = 0; i < facts->input_count; i++)
        if (strcmp(facts->inputs[i].name, "code") == 0 ||
            strcmp(facts->inputs[i].name, "command") == 0)
            write_subject(json, "", facts->inputs[i].name, facts->inputs[i].sha256);
    write_subject(json, "", "stdout", facts->output[0].sha256);
    write_subject(json, "", "stderr", facts->output[1].sha256);
    for (size_t i = 0; i < facts->artifact_count; i++)
        write_subject(json, "artifact/", facts->artifacts[i].name, facts->artifacts[i].sha256);
    jcs_close(json, ']');
}

void statement_memory_done(struct statement_memory *memory)
{
    bytes_done(&memory->isolation);
    bytes_done(&memory->granted);
}

/* --- wholes -------------------------------------------------------------------------------------
 */

static int give(struct jcs *json, struct bytes *out, error *err)
{
    int result = jcs_end(json, err);
    if (result == 0)
        bytes_add(out, json->out.data, json->out.size);
    jcs_done(json);
    if (result == 0 && out->failed)
        return fail(err, ERR_SYSTEM, "no memory for a receipt");
    return result;
}

int statement_write(const struct receipt_facts *facts, const struct fact_place *machine,
                    const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    (void) bytes_reserve(&json.out, 8192);
    jcs_open(&json, '{');
    jcs_text_field(&json, "_type", STATEMENT_TYPE);
    jcs_open_field(&json, "predicate", '{');
    jcs_text_field(&json, "approval", facts->approval);
    write_files(&json, "artifacts", facts->artifacts, facts->artifact_count);
    write_caller(&json, facts);
    write_checks(&json, facts);
    write_denials(&json, facts);
    write_variables(&json, facts);
    write_execution(&json, facts);
    write_gate(&json, facts);
    jcs_text_field(&json, "glovebox", machine->version);
    jcs_text_field(&json, "id", place->id);
    write_files(&json, "inputs", facts->inputs, facts->input_count);
    write_isolation(&json, facts, machine);
    write_leftovers(&json, facts);
    write_limits(&json, facts, machine);
    write_place(&json, place);
    write_connections(&json, facts);
    write_outcome(&json, facts);
    write_outputs(&json, facts);
    write_named(&json, "policy", &facts->policy);
    write_named(&json, "template", &facts->template);
    write_times(&json, facts, place->at_ms);
    jcs_close(&json, '}');
    jcs_text_field(&json, "predicateType", PREDICATE_RUN);
    write_subjects(&json, facts);
    jcs_close(&json, '}');
    return give(&json, out, err);
}

int statement_write_opened(const struct receipt_facts *facts, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    jcs_open(&json, '{');
    write_caller(&json, facts);
    write_execution(&json, facts);
    write_files(&json, "inputs", facts->inputs, facts->input_count);
    write_named(&json, "policy", &facts->policy);
    write_moment(&json, "submitted_ms", facts->submitted_ms);
    write_named(&json, "template", &facts->template);
    jcs_close(&json, '}');
    return give(&json, out, err);
}

int statement_write_lost(const char *opened, size_t opened_size,
                         const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    unsigned char hash[32];
    char sha256[SHA256_TEXT_SIZE];
    (void) crypto_hash_sha256(hash, (const unsigned char *) opened, opened_size);
    (void) sodium_bin2hex(sha256, sizeof sha256, hash, sizeof hash);
    jcs_open(&json, '{');
    jcs_text_field(&json, "_type", STATEMENT_TYPE);
    jcs_open_field(&json, "predicate", '{');
    jcs_text_field(&json, "id", place->id);
    write_place(&json, place);
    jcs_key(&json, "opened");
    jcs_raw(&json, opened, opened_size);
    jcs_open_field(&json, "outcome", '{');
    jcs_text_field(&json, "fault", "glovebox");
    jcs_text_field(&json, "status", "lost");
    jcs_close(&json, '}');
    jcs_open_field(&json, "times", '{');
    write_moment(&json, "written_ms", place->at_ms);
    jcs_close(&json, '}');
    jcs_close(&json, '}');
    jcs_text_field(&json, "predicateType", PREDICATE_LOST);
    jcs_open_field(&json, "subject", '[');
    write_subject(&json, "", "opened", sha256);
    jcs_close(&json, ']');
    jcs_close(&json, '}');
    return give(&json, out, err);
}

int statement_write_event(const char *kind, const struct event_field *fields,
                          const struct statement_place *place, struct bytes *out, error *err)
{
    struct jcs json = { 0 };
    jcs_open(&json, '{');
    jcs_integer_field(&json, "at_ms", place->at_ms);
    jcs_text_field(&json, "event", kind);
    jcs_open_field(&json, "facts", '{');
    for (const struct event_field *field = fields; field->name; field++)
        if (field->text)
            jcs_text_field(&json, field->name, field->text);
        else
            jcs_integer_field(&json, field->name, field->number);
    jcs_close(&json, '}');
    jcs_text_field(&json, "id", place->id);
    write_place(&json, place);
    jcs_close(&json, '}');
    return give(&json, out, err);
}
