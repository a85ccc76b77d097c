/* finalize.c - the same functions beside the loop and on it. */
#include "engine/run/finalize.h"

#include "base/table.h"
#include "engine/audit/audit_log.h"
#include "engine/run/run.h"
#include "json/writer.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

enum {
    BESIDE_FROM = 128 * 1024, /* a millisecond, of bytes that are all escaped */
    LOOK_MS = 5,
    PATIENCE_MS = 15000
};

static void hash_output(const struct output *output, struct fact_output *fact)
{
    char marker[OUTPUT_MARKER_MOST];
    struct output_part parts[OUTPUT_PARTS];
    unsigned char hash[crypto_hash_sha256_BYTES];
    crypto_hash_sha256_state state;
    output_parts(output, "", marker, parts);
    *fact = (struct fact_output){ .bytes = output->total };
    (void) crypto_hash_sha256_init(&state);
    for (size_t i = 0; i < OUTPUT_PARTS; i++) {
        if (i == 1)
            continue; /* the marker is our word, not the program's */
        (void) crypto_hash_sha256_update(&state, (const unsigned char *) parts[i].data,
                                         parts[i].size);
        fact->kept += parts[i].size;
    }
    (void) crypto_hash_sha256_final(&state, hash);
    (void) sodium_bin2hex(fact->sha256, sizeof fact->sha256, hash, sizeof hash);
}

static void write_text(const struct output *output, unsigned index, struct bytes *out)
{
    char marker[OUTPUT_MARKER_MOST];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(output, index == 0 ? "stdout" : "stderr", marker, parts);
    if (parts[1].size + parts[2].size + parts[3].size == 0) {
        json_text(out, parts[0].data, parts[0].size);
        return;
    }
    auto_bytes whole = { 0 }; /* a character may lie across two parts */
    for_each(part, parts)
        bytes_add(&whole, part->data, part->size);
    json_text(out, whole.data, whole.size);
}

static bool has_said_much(const struct run *run)
{
    const struct harvest *harvest = &run->harvest;
    size_t said = harvest->results.size;
    for_each(output, harvest->output)
        said += output->head_size + output->tail_size;
    return run->has_harvest && said >= BESIDE_FROM;
}

bool settling_is_due(const struct run *run)
{
    if (run->is_settled)
        return false;
    return has_said_much(run) || (run->record && receipts_are_held(run->runs->receipts));
}

bool settling_is_under_way(const struct run *run)
{
    return run->settling && !run->settling->is_done;
}

static void work(void *user)
{
    struct settling *settling = user;
    const struct harvest *harvest = &settling->run->harvest;
    for (unsigned i = 0; i < 2; i++) {
        hash_output(&harvest->output[i], &settling->output[i]);
        write_text(&harvest->output[i], i, &settling->text[i]);
    }
    fact_hash(harvest->results.data, harvest->results.size, settling->results);
}

static void look(uv_timer_t *timer)
{
    struct settling *settling = timer->data;
    const struct run *run = settling->run;
    if (run->record && receipts_are_held(run->runs->receipts) &&
        !deadline_has_passed(settling->patience)) {
        (void) uv_timer_start(timer, look, LOOK_MS, 0);
        return;
    }
    settling->is_done = true;
    settling->told(settling->run);
}

static void done(void *user)
{
    struct settling *settling = user;
    settling->has_worked = true;
    look(&settling->look);
}

void settling_begin(struct run *run, void (*told)(struct run *run))
{
    struct settling *settling = calloc(1, sizeof *settling);
    run->is_settled = true;
    if (!settling) {
        told(run);
        return;
    }
    *settling =
        (struct settling){ .job = { work, done, settling, NULL }, .run = run, .told = told };
    run->settling = settling;
    settling->look.data = settling;
    settling->patience = deadline_in(PATIENCE_MS);
    (void) uv_timer_init(run->runs->loop, &settling->look);
    if (has_said_much(run))
        beside_do(run->runs->loop, &settling->job);
    else
        (void) uv_timer_start(&settling->look, look, LOOK_MS, 0);
}

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void settling_free(struct run *run)
{
    if (!run->settling)
        return;
    for_each(text, run->settling->text)
        bytes_done(text);
    uv_close((uv_handle_t *) &run->settling->look, on_closed);
    run->settling = NULL;
}

static bool has_worked(const struct run *run)
{
    return run->settling && run->settling->has_worked;
}

void settled_output(const struct run *run, unsigned index, struct fact_output *ret_fact)
{
    if (has_worked(run))
        *ret_fact = run->settling->output[index];
    else
        hash_output(&run->harvest.output[index], ret_fact);
}

void settled_results(const struct run *run, char ret_sha256[SHA256_TEXT_SIZE])
{
    if (has_worked(run))
        memcpy(ret_sha256, run->settling->results, SHA256_TEXT_SIZE);
    else
        fact_hash(run->harvest.results.data, run->harvest.results.size, ret_sha256);
}

void settled_text(const struct run *run, unsigned index, struct bytes *out)
{
    if (has_worked(run))
        json_raw(out, run->settling->text[index].data, run->settling->text[index].size);
    else
        write_text(&run->harvest.output[index], index, out);
}
