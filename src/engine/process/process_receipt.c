/* process_receipt.c - records of a program that a client started in a session: one at its
 * beginning, before it starts, and a receipt when it has ended, for whatever reason. Its output is
 * not hashed: the receipt has only the number of bytes. */
#include "engine/process/processes.h"

#include "base/auto_free.h"
#include "base/clock.h"
#include "engine/audit/audit_log.h"
#include "engine/network/connection_document.h"
#include "engine/session/session_registry.h"
#include "ledger/sha256.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXECUTION_ID_SIZE = 64, INPUT_COMMAND = 0, INPUT_FOLDER, INPUT_STDIN, INPUTS };

/* Facts that are known at its beginning. */
struct process_proof {
    char id[EXECUTION_ID_SIZE]; /* "ses_…/prc_7" */
    struct account *account;
    unsigned note;
    struct fact_file inputs[INPUTS];
    struct sha256 stdin_hash;
    struct bytes names; /* names of variables, each ended by NUL */
    size_t name_count;
    uint64_t printed[2], cpu_before_us;
    int64_t began_us;
    char receipt[RECEIPT_ID_SIZE];
};

static void hash_words(const char *words, size_t size, const char *name, struct fact_file *file)
{
    file->name = name;
    file->bytes = size;
    fact_hash(words, size, file->sha256);
}

/* Reads the facts from the START payload: see process_write_start(). */
static void read_order(struct process_proof *proof, const struct bytes *order)
{
    struct agent_start start;
    memcpy(&start, order->data, sizeof start);
    const char *folder = order->data + sizeof start;
    const char *words = folder + strlen(folder) + 1;
    const char *end = words;
    for (unsigned i = 0; i < start.arguments; i++)
        end += strlen(end) + 1;
    hash_words(words, (size_t) (end - words), "command", &proof->inputs[INPUT_COMMAND]);
    hash_words(folder, strlen(folder) + 1, "folder", &proof->inputs[INPUT_FOLDER]);
    proof->inputs[INPUT_STDIN].name = "stdin";
    sha256_begin(&proof->stdin_hash);
    for (unsigned i = 0; i < start.variables; i++) {
        bytes_add(&proof->names, end, strcspn(end, "="));
        bytes_add(&proof->names, "", 1);
        proof->name_count++;
        end += strlen(end) + 1;
    }
}

static void begin_facts(const struct process_proof *proof, const struct session *session,
                        struct receipt_facts *facts)
{
    const struct api_key *key = &proof->account->key;
    *facts = (struct receipt_facts){
        .id = proof->id,
        .kind = "process",
        .key = key->id[0] ? key->id : NULL,
        .tenant = key->id[0] ? key->tenant : NULL,
        .input_count = INPUTS,
        .inputs = proof->inputs,
    };
    session_add_facts(session, facts);
}

int process_proof_begin(struct process *process, struct account *account, const struct bytes *order,
                        error *err)
{
    struct session *session = process->session;
    struct receipts *receipts = session_runs(session)->receipts;
    struct process_proof *proof = calloc(1, sizeof *proof);
    struct receipt_facts facts;
    if (!proof)
        return fail(err, ERR_SYSTEM, "no memory for a process");
    proof->account = account;
    proof->began_us = now_us();
    proof->cpu_before_us = session_cpu_us(session);
    (void) snprintf(proof->id, sizeof proof->id, "%s/%s", session_id(session), process->id);
    read_order(proof, order);
    begin_facts(proof, session, &facts);
    facts.submitted_ms = process->started_ms;
    proof->note = NOTE_NONE;
    if (receipts && (receipt_note(receipts, &facts, &proof->note, err) < 0 ||
                     receipt_began(receipts, &facts, err) < 0)) {
        receipt_strike(receipts, proof->note);
        bytes_done(&proof->names);
        free(proof);
        return -1;
    }
    if (receipts)
        account_charge_log(account, receipts_last_size(receipts));
    process->proof = proof;
    route_usage_begin(session, &process->route);
    return 0;
}

void process_proof_fed(struct process *process, const void *bytes, size_t size)
{
    struct process_proof *proof = process->proof;
    if (!proof)
        return;
    proof->inputs[INPUT_STDIN].bytes += size;
    sha256_add(&proof->stdin_hash, bytes, size);
}

void process_proof_printed(struct process *process, unsigned stream, size_t size)
{
    if (process->proof)
        process->proof->printed[stream == 2] += size;
}

const char *process_receipt(const struct process *process)
{
    return process->proof && process->proof->receipt[0] ? process->proof->receipt : NULL;
}

static struct verdict judge(const struct process *process, const struct session *session)
{
    bool has_lost = session_is_lost(session);
    if (process->timed_out)
        return (struct verdict){ RUN_LIMIT, FAULT_LIMIT, LIMIT_wall };
    if (process->pid != 0 && process->failure.code != ERR_NONE)
        return (struct verdict){ has_lost ? RUN_LOST : RUN_CANCELLED,
                                 has_lost ? FAULT_GLOVEBOX : FAULT_CALLER, LIMITS };
    if (process->failure.code == ERR_NONE && process->exit_code == 0 && process->signal == 0)
        return (struct verdict){ RUN_OK, FAULT_NONE, LIMITS };
    return (struct verdict){ RUN_ERROR, FAULT_CODE, LIMITS };
}

static const char **list_names(const struct process_proof *proof)
{
    const char **names = calloc(proof->name_count + 1, sizeof *names);
    const char *at = proof->names.data;
    for (size_t i = 0; names && !proof->names.failed && i < proof->name_count; i++) {
        names[i] = at;
        at += strlen(at) + 1;
    }
    return names;
}

/* Gives  the texts that the rows point to. */
static struct connection_texts *list_connections(const struct process *process,
                                                 const struct network_policy *rules,
                                                 struct receipt_facts *facts)
{
    const struct connection_log *kept = &process->route.connections;
    struct fact_connection *rows = calloc(kept->count + 1, sizeof *rows);
    struct connection_texts *texts = calloc(kept->count + 1, sizeof *texts);
    facts->connections = texts ? rows : NULL;
    facts->connection_count = kept->count;
    facts->connections_unlisted = kept->unlisted;
    for (size_t i = 0; rows && texts && i < kept->count; i++)
        connection_fact(&kept->records[i], rules, &texts[i], &rows[i]);
    if (!texts)
        free(rows);
    return texts;
}

/* Processor time and memory are those of the whole session meanwhile: its programs share a
 * group. */
static void end_facts(const struct process *process, const struct session *session,
                      struct receipt_facts *facts)
{
    struct process_proof *proof = process->proof;
    uint64_t cpu_us = session_cpu_us(session);
    struct fact_file *fed = &proof->inputs[INPUT_STDIN];
    sha256_end_text(&proof->stdin_hash, fed->sha256);
    facts->submitted_ms = process->started_ms;
    facts->started_ms = process->pid != 0 ? process->started_ms : 0;
    facts->ended_ms = process->ended_ms;
    facts->output[0].bytes = proof->printed[0];
    facts->output[1].bytes = proof->printed[1];
    facts->verdict = judge(process, session);
    facts->exited = process->failure.code == ERR_NONE;
    facts->exit_code = process->exit_code;
    facts->signal = process->signal;
    facts->used[LIMIT_wall] = (uint64_t) (now_us() - proof->began_us) / 1000;
    if (cpu_us > proof->cpu_before_us)
        facts->used[LIMIT_cpu] = (cpu_us - proof->cpu_before_us) / 1000;
}

int process_proof_end(struct process *process, struct session *session, error *err)
{
    struct process_proof *proof = process->proof;
    struct receipts *receipts = session_runs(session)->receipts;
    struct receipt_facts facts;
    if (!proof || proof->receipt[0])
        return 0;
    route_usage_end(session, &process->route);
    if (!receipts)
        return 0;
    begin_facts(proof, session, &facts);
    end_facts(process, session, &facts);
    auto_free const char **names = list_names(proof);
    facts.variables = names;
    facts.variable_count = proof->name_count;
    struct connection_texts *texts =
        list_connections(process, session_plan(session)->route, &facts);
    int result = receipt_write(receipts, &facts, proof->note, proof->receipt, err);
    if (result == 0)
        account_charge_log(proof->account, receipts_last_size(receipts));
    free(texts);
    free((void *) (uintptr_t) facts.connections);
    return result;
}

void process_proof_free(struct process *process)
{
    route_usage_done(&process->route);
    if (process->proof)
        bytes_done(&process->proof->names);
    free(process->proof);
    process->proof = NULL;
}
