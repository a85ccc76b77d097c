/* finalize.c - the same functions are called on a disk thread and on the loop. */
#include "engine/run/finalize.h"

#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/run/run.h"
#include "ledger/sha256.h"
#include "json/quote.h"
#include "json/writer.h"

#include <stdlib.h>
#include <string.h>

enum {
    BESIDE_FROM = 128 * 1024, /* takes a millisecond if every byte must be escaped */
    AROUND = 4096,            /* bytes of a result before its stdout */
    LOOK_MS = 5,
    PATIENCE_MS = 15000
};

static void hash_output(const struct output *output, struct fact_output *fact)
{
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    struct sha256 state;
    output_parts(output, "", marker, parts);
    *fact = (struct fact_output){ .bytes = output->total };
    sha256_begin(&state);
    for (size_t i = 0; i < OUTPUT_PARTS; i++) {
        if (i == 1)
            continue; /* the marker is our own text */
        sha256_add(&state, parts[i].data, parts[i].size);
        fact->kept += parts[i].size;
    }
    sha256_end_text(&state, fact->sha256);
}

static void write_text(const struct output *output, unsigned index, struct bytes *out)
{
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(output, index == 0 ? "stdout" : "stderr", marker, parts);
    if (parts[1].size + parts[2].size + parts[3].size == 0) {
        json_text(out, parts[0].data, parts[0].size);
        return;
    }
    struct json_quote quote;
    size_t size = AROUND;
    for_each(part, parts)
        size += part->size + part->size / 64; /* an estimate: few bytes are escaped */
    json_comma(out);
    if (!bytes_reserve(out, size))
        return;
    json_quote_begin(&quote, out);
    for_each(part, parts)
        json_quote_add(&quote, part->data, part->size);
    json_quote_end(&quote);
}

static bool has_said_much(const struct run *run)
{
    const struct collector *collector = &run->collector;
    size_t said = collector->results.size;
    for_each(output, collector->output)
        said += output->head_size + output->tail_size;
    return run->has_harvest && said >= BESIDE_FROM;
}

bool finalize_is_due(const struct run *run)
{
    if (run->is_settled)
        return false;
    return has_said_much(run) || (run->record && receipts_are_held(run->runs->receipts));
}

bool finalize_is_under_way(const struct run *run)
{
    return run->awaits_files || (run->finalize && !run->finalize->is_done);
}

static void work(void *user)
{
    struct finalize *finalize = user;
    const struct collector *collector = &finalize->run->collector;
    for (unsigned i = 0; i < 2; i++) {
        hash_output(&collector->output[i], &finalize->output[i]);
        write_text(&collector->output[i], i, &finalize->text[i]);
    }
    fact_hash(collector->results.data, collector->results.size, finalize->results);
}

static void look(uv_timer_t *timer)
{
    struct finalize *finalize = timer->data;
    const struct run *run = finalize->run;
    if (run->record && receipts_are_held(run->runs->receipts) &&
        !deadline_has_passed(finalize->patience)) {
        (void) uv_timer_start(timer, look, LOOK_MS, 0);
        return;
    }
    finalize->is_done = true;
    finalize->told(finalize->run);
}

static void done(void *user)
{
    struct finalize *finalize = user;
    finalize->has_worked = true;
    look(&finalize->look);
}

void finalize_begin(struct run *run, void (*told)(struct run *run))
{
    struct finalize *finalize = calloc(1, sizeof *finalize);
    run->is_settled = true;
    if (!finalize) {
        told(run);
        return;
    }
    *finalize =
        (struct finalize){ .job = { work, done, finalize, NULL }, .run = run, .told = told };
    run->finalize = finalize;
    finalize->look.data = finalize;
    finalize->patience = deadline_in(PATIENCE_MS);
    (void) uv_timer_init(run->runs->loop, &finalize->look);
    if (has_said_much(run))
        disk_worker_do(run->runs->loop, &finalize->job);
    else
        (void) uv_timer_start(&finalize->look, look, LOOK_MS, 0);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void finalize_free(struct run *run)
{
    if (!run->finalize)
        return;
    for_each(text, run->finalize->text)
        bytes_done(text);
    uv_close((uv_handle_t *) &run->finalize->look, on_closed);
    run->finalize = NULL;
}

static bool has_worked(const struct run *run)
{
    return run->finalize && run->finalize->has_worked;
}

void settled_output(const struct run *run, unsigned index, struct fact_output *ret_fact)
{
    if (has_worked(run))
        *ret_fact = run->finalize->output[index];
    else
        hash_output(&run->collector.output[index], ret_fact);
}

void settled_results(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE])
{
    if (has_worked(run))
        memcpy(ret_sha256, run->finalize->results, SHA256_TEXT_SIZE);
    else
        fact_hash(run->collector.results.data, run->collector.results.size, ret_sha256);
}

void settled_text(const struct run *run, unsigned index, struct bytes *out)
{
    if (has_worked(run)) {
        json_comma(out);
        bytes_join(out, &run->finalize->text[index]);
    } else
        write_text(&run->collector.output[index], index, out);
}
