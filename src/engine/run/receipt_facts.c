/* receipt_facts.c - the facts of a run (or a cell) for its receipt, collected when it is submitted
 * and when it is done. */
#include "engine/run/run.h"

#include "base/clock.h"
#include "engine/audit/audit_log.h"
#include "engine/network/connection_document.h"
#include "ledger/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The inputs, recorded while the request exists. */
struct run_record {
    size_t input_count, variable_count;
    struct fact_file *inputs;
    char **variables;           /* names */
    struct client_claim *claim; /* NULL: none */
    struct bytes sealed;        /* facts that its receipt has only sealed */
    unsigned note;
    bool is_noted;
    enum { BEGAN_UNSAID, BEGAN_SAID, BEGAN_FAILED } began; /* whether the log has its beginning */
};

static void hash_content(const struct payload *content, struct fact_file *file)
{
    static unsigned char piece[48 * 1024]; /* a multiple of 3, for base64 */
    struct sha256 state;
    sha256_begin(&state);
    if (!content->is_base64)
        sha256_add(&state, content->text, (size_t) content->size);
    for (uint64_t offset = 0; content->is_base64 && offset < content->size;) {
        size_t size = payload_read(content, offset, piece, sizeof piece);
        if (size == 0)
            break;
        sha256_add(&state, piece, size);
        offset += size;
    }
    sha256_end_text(&state, file->sha256);
    file->bytes = content->size;
}

/* Each word ends with NUL, so that different lists have different hashes. */
static void hash_words(const char *const *words, size_t count, struct fact_file *file)
{
    auto_bytes text = { 0 };
    for (size_t i = 0; i < count; i++)
        bytes_add(&text, words[i], strlen(words[i]) + 1);
    fact_hash(text.data, text.size, file->sha256);
    file->bytes = text.size;
}

static struct fact_file *next_input(struct run_record *record, const char *name)
{
    char *copy = strdup(name);
    if (!copy)
        return NULL;
    record->inputs[record->input_count] = (struct fact_file){ .name = copy };
    return &record->inputs[record->input_count++];
}

static int gather_file(struct run_record *record, const struct request_file *given)
{
    auto_bytes name = { 0 };
    bytes_print(&name, "file/%s", given->path);
    struct fact_file *file = next_input(record, bytes_text(&name));
    if (!file)
        return -1;
    hash_content(&given->content, file);
    return 0;
}

static int gather_inputs(struct run_record *record, const struct run_request *request)
{
    record->inputs = calloc(request->file_count + 5, sizeof *record->inputs);
    record->variables = calloc(request->variable_count + 1, sizeof *record->variables);
    struct fact_file *file;
    if (!record->inputs || !record->variables)
        return -1;
    if (request->has_code) {
        if (!(file = next_input(record, "code")))
            return -1;
        hash_content(&request->code, file);
    }
    if (request->filename) {
        if (!(file = next_input(record, "filename")))
            return -1;
        hash_words(&request->filename, 1, file);
    }
    if (request->command_count > 0) {
        if (!(file = next_input(record, "command")))
            return -1;
        hash_words(request->command, request->command_count, file);
    }
    if (request->argument_count > 0) {
        if (!(file = next_input(record, "arguments")))
            return -1;
        hash_words(request->arguments, request->argument_count, file);
    }
    if (request->has_stdin) {
        if (!(file = next_input(record, "stdin")))
            return -1;
        hash_content(&request->stdin_content, file);
    }
    for (size_t i = 0; i < request->file_count; i++)
        if (gather_file(record, &request->files[i]) < 0)
            return -1;
    for (size_t i = 0; i < request->variable_count; i++) {
        char *copy = strdup(request->variables[i].name);
        if (!copy)
            return -1;
        record->variables[record->variable_count++] = copy;
    }
    return 0;
}

void run_record_free(struct run *run)
{
    struct run_record *record = run->record;
    if (!record)
        return;
    for (size_t i = 0; i < record->input_count; i++)
        free((char *) (uintptr_t) record->inputs[i].name);
    for (size_t i = 0; i < record->variable_count; i++)
        free(record->variables[i]);
    if (record->is_noted)
        receipt_strike(run->runs->receipts, record->note);
    bytes_done(&record->sealed);
    free(record->claim);
    free(record->inputs);
    free((void *) record->variables);
    free(record);
    run->record = NULL;
}

void run_code_hash(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE])
{
    const struct run_record *record = run->record;
    ret_sha256[0] = '\0';
    if (record && record->input_count > 0)
        (void) snprintf(ret_sha256, SHA256_TEXT_SIZE, "%s", record->inputs[0].sha256);
}

const char *run_traceparent(const struct run *run)
{
    const struct run_record *record = run->record;
    return record && record->claim ? record->claim->traceparent : "";
}

/* Facts that are known at the beginning. */
static void begin_facts(const struct run *run, struct receipt_facts *facts)
{
    static const char *const starts[] = { [START_BUILT] = "built", [START_PARKED] = "parked" };
    const struct run_record *record = run->record;
    bool is_command = record->input_count > 0 && strcmp(record->inputs[0].name, "command") == 0;
    *facts = (struct receipt_facts){
        .sealed = record->sealed.size > 0 ? record->sealed.data : NULL,
        .id = run->id,
        .kind = run->kind->is_cell ? "cell"
                : run->check_only  ? "check"
                : is_command       ? "command"
                                   : "run",
        .language = run->plan.language ? run->plan.language->name : NULL,
        .session = run->session,
        .context = run->context,
        .start = run->kind->start                  ? run->kind->start
                 : run->sandbox || run->started_us ? starts[run->start]
                                                   : NULL,
        .claim = record->claim,
        .approval = run->approval[0] ? run->approval : NULL,
        .key = run->account->key.id[0] ? run->account->key.id : NULL,
        .tenant = run->account->key.id[0] ? run->account->key.tenant : NULL,
        .policy = { run->plan.policy->name, run->plan.policy->digest },
        .template = { run->plan.template->name, run->plan.template->digest },
        .input_count = record->input_count,
        .inputs = record->inputs,
        .variable_count = record->variable_count,
        .variables = (const char *const *) record->variables,
        .granted = run->plan.limits,
    };
}

static int keep_claim(struct run_record *record, const struct run_request *request)
{
    if (!request->claim)
        return 0;
    record->claim = malloc(sizeof *record->claim);
    if (!record->claim)
        return -1;
    *record->claim = *request->claim;
    return 0;
}

int run_note(struct run *run, const struct run_request *request, error *err)
{
    struct receipts *receipts = run->runs->receipts;
    struct receipt_facts facts;
    if (!receipts)
        return 0;
    run->record = calloc(1, sizeof *run->record);
    if (!run->record || gather_inputs(run->record, request) < 0 ||
        keep_claim(run->record, request) < 0)
        return fail(err, ERR_SYSTEM, "no memory to note a run");
    begin_facts(run, &facts);
    facts.submitted_ms = wall_clock_ms();
    if (receipt_note(receipts, &facts, &run->record->note, err) < 0)
        return -1;
    run->record->is_noted = true;
    return 0;
}

/* The target of a denial may contain texts of the code; a receipt has only its layer. */
static const char *target_in_receipt(const struct denial *denial)
{
    return strcmp(denial->layer, "precheck") == 0 ? "code" : denial->target;
}

/* The lists of a receipt are valid as long as the arrays. A list without memory is NULL, and only
 * its count is reported. */
static void list_artifacts(const struct collector *collector, struct receipt_facts *facts)
{
    struct fact_file *artifacts = calloc(collector->artifact_count + 1, sizeof *artifacts);
    facts->artifacts = artifacts;
    facts->artifact_count = collector->artifact_count;
    for (size_t i = 0; artifacts && i < collector->artifact_count; i++) {
        const struct artifact *from = &collector->artifacts[i];
        artifacts[i] = (struct fact_file){ .name = from->path, .bytes = from->size };
        (void) snprintf(artifacts[i].sha256, sizeof artifacts[i].sha256, "%s", from->sha256);
    }
}

static void list_denials(const struct denials *from, struct receipt_facts *facts)
{
    struct fact_denial *denials = calloc(from->count + 1, sizeof *denials);
    bool has_more = from->unlisted > 0;
    facts->denials = denials;
    facts->denial_count = from->count + has_more;
    if (!denials)
        return;
    for (size_t i = 0; i < from->count; i++) {
        const struct denial *row = &from->rows[i];
        denials[i] = (struct fact_denial){ row->layer, target_in_receipt(row), row->count };
    }
    if (has_more)
        denials[from->count] = (struct fact_denial){ "other", "more", from->unlisted };
}

static void list_connections(const struct run *run, struct connection_texts **ret_texts,
                             struct receipt_facts *facts)
{
    const struct connection_log *kept = &run->connections;
    size_t count = kept->count;
    struct fact_connection *connections = calloc(count + 1, sizeof *connections);
    *ret_texts = calloc(count + 1, sizeof **ret_texts);
    facts->connection_count = count;
    facts->connections_unlisted = kept->unlisted;
    if (!connections || !*ret_texts) {
        free(connections);
        return;
    }
    facts->connections = connections;
    for (size_t i = 0; i < count; i++)
        connection_fact(&kept->records[i], run->plan.route, &(*ret_texts)[i], &connections[i]);
}

static void list_checks(const struct check_outcome *outcome, struct receipt_facts *facts)
{
    if (!outcome)
        return;
    struct fact_check *checks = calloc(outcome->count + 1, sizeof *checks);
    facts->checks = checks;
    for (size_t i = 0; checks && i < outcome->count; i++) {
        const struct check_finding *from = &outcome->findings[i];
        checks[i] = (struct fact_check){ check_rows[from->rule].name,
                                         check_decision_name(from->decision), from->line };
    }
    facts->check_decision = check_decision_name(outcome->decision);
    facts->check_count = outcome->count;
    facts->checks_unlisted = outcome->unlisted;
}

static void list_gate(const struct run *run, struct receipt_facts *facts)
{
    const struct output_check *output_check = run->output_check;
    if (!output_check)
        return;
    const struct output_check_outcome *outcome = &output_check->outcome;
    struct fact_gate *rows = calloc(outcome->count + 1, sizeof *rows);
    facts->output_check = rows;
    for (size_t i = 0; rows && i < outcome->count; i++)
        rows[i] = (struct fact_gate){ output_check_rule_name(outcome->findings[i].rule),
                                      output_check_place_name(outcome->findings[i].place),
                                      outcome->findings[i].line };
    facts->output_check_verdict = output_check_verdict_name(outcome->verdict);
    facts->output_check_expectation = output_check->sha256;
    facts->output_check_count = outcome->count;
    facts->output_check_unlisted = outcome->unlisted;
    facts->output_check_withheld = output_check_has_withheld(run);
}

/* By the wall clock when the run was submitted, so that each call gives the same. */
static int64_t wall_clock_at(const struct run *run, int64_t moment_us)
{
    return moment_us == 0 ? 0 : run->created_ms + (moment_us - run->submitted_us) / 1000;
}

static void end_facts(const struct run *run, struct receipt_facts *facts)
{
    const struct collector *collector = &run->collector;
    facts->walls = run->walls;
    facts->degraded = run->degraded;
    facts->submitted_ms = wall_clock_at(run, run->submitted_us);
    facts->started_ms = wall_clock_at(run, run->started_us);
    facts->ended_ms = wall_clock_at(run, run->ended_us);
    settled_output(run, 0, &facts->output[0]);
    settled_output(run, 1, &facts->output[1]);
    if (collector->results.size > 0) {
        facts->results.bytes = collector->results.size;
        settled_results(run, facts->results.sha256);
    }
    facts->verdict = run->verdict;
    facts->exited = run->evidence.exited;
    facts->exit_code = run->evidence.exit_code;
    facts->signal = run->evidence.signal;
    for (enum limit_id id = 0; id < LIMITS; id++) {
        facts->used[id] = run_used(run, id);
        facts->hits[id] = run->evidence.hits[id];
    }
    facts->was_stopped = collector->has_stopped;
    facts->leftovers_are_known = run->leftovers_are_known;
    facts->leftovers = run->leftovers;
    if (run->sandbox)
        facts->leftovers_are_known =
            counters_count(sandbox_groups(run->sandbox), &facts->leftovers);
}

/* All facts of a run's receipt, and the lists that they point to. */
struct gathered {
    struct receipt_facts facts;
    struct fact_counter counters[COUNTERS_MAX];
    struct connection_texts *texts;
};

static void gather(const struct run *run, struct gathered *ret)
{
    *ret = (struct gathered){ 0 };
    begin_facts(run, &ret->facts);
    end_facts(run, &ret->facts);
    ret->facts.counter_count = counters_evidence(&run->counters, ret->counters);
    ret->facts.counters = ret->counters;
    list_artifacts(&run->collector, &ret->facts);
    list_denials(&run->collector.denials, &ret->facts);
    list_checks(run->checks, &ret->facts);
    list_gate(run, &ret->facts);
    list_connections(run, &ret->texts, &ret->facts);
}

static void gathered_done(const struct gathered *gathered)
{
    free((void *) (uintptr_t) gathered->facts.artifacts);
    free((void *) (uintptr_t) gathered->facts.denials);
    free((void *) (uintptr_t) gathered->facts.checks);
    free((void *) (uintptr_t) gathered->facts.output_check);
    free((void *) (uintptr_t) gathered->facts.connections);
    free(gathered->texts);
}

#define auto_gathered __attribute__((cleanup(gathered_done))) struct gathered

int run_tell_began(struct run *run, error *err)
{
    struct run_record *record = run->record;
    struct receipt_facts facts;
    if (!record || record->began == BEGAN_SAID)
        return 0;
    if (record->began == BEGAN_FAILED)
        return fail(err, ERR_UNAVAILABLE, "its beginning could not be written to the log");
    begin_facts(run, &facts);
    record->began = BEGAN_FAILED;
    if (receipt_began(run->runs->receipts, &facts, err) < 0)
        return -1;
    account_charge_log(run->account, receipts_last_size(run->runs->receipts));
    record->began = BEGAN_SAID;
    return 0;
}

int run_seal(struct run *run, error *err)
{
    auto_gathered gathered = { 0 };
    auto_bytes sealed = { 0 };
    if (!run->record)
        return 0;
    gather(run, &gathered);
    if (receipt_seal(run->runs->receipts, &gathered.facts, &sealed, err) < 0)
        return -1;
    if (!*bytes_text(&sealed))
        return fail(err, ERR_SYSTEM, "no memory for a receipt");
    run->record->sealed = sealed;
    sealed = (struct bytes){ 0 };
    return 0;
}

int run_write_receipt(struct run *run, error *err)
{
    auto_gathered gathered = { 0 };
    if (!run->record)
        return 0;
    gather(run, &gathered);
    int result =
        receipt_write(run->runs->receipts, &gathered.facts, run->record->note, run->receipt, err);
    if (result == 0)
        account_charge_log(run->account, receipts_last_size(run->runs->receipts));
    run->record->is_noted = false; /* written, or to be recorded as lost */
    return result;
}
