/* collector.c - one row for each frame: when it may come, and what it does. */
#include "engine/run/collector.h"

#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"
#include "engine/run/run_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of a run's results: what is kept, what is looked at (text that is no ASCII comes in escapes,
 * twice as long as it is kept), and how many times as much may be sent before it counts as a flood.
 */
enum {
    RESULT_BYTES_MOST = 8 * 1024 * 1024,
    RESULT_BYTES_LOOKED = 2 * RESULT_BYTES_MOST,
    RESULTS_FLOOD = 16
};

void harvest_init(struct harvest *harvest, const struct limits *limits, const char *policy,
                  struct blob_store *blobs)
{
    *harvest = (struct harvest){ .phase = HARVEST_LOADING,
                                 .limits = limits,
                                 .policy = policy,
                                 .blobs = blobs,
                                 .owner = { "", "" } };
    harvest->writer.fd = -1;
    for_each(output, harvest->output)
        output_init(output, limits->output);
}

void harvest_done(struct harvest *harvest)
{
    for_each(output, harvest->output)
        output_done(output);
    if (harvest->file_is_open)
        blob_abandon(&harvest->writer);
    free(harvest->file_path);
    for (size_t i = 0; i < harvest->artifact_count; i++)
        free(harvest->artifacts[i].path);
    free(harvest->artifacts);
    denials_done(&harvest->denials);
    bytes_done(&harvest->results);
    shown_done(&harvest->shown);
    bytes_done(&harvest->failure);
    *harvest = (struct harvest){ 0 };
}

void harvest_discard(struct harvest *harvest)
{
    for (size_t i = 0; i < harvest->artifact_count; i++)
        if (!harvest->artifacts[i].was_known)
            blob_forget(harvest->blobs, harvest->owner.name, harvest->artifacts[i].sha256);
    harvest_done(harvest);
}

static int out_of_turn(const struct inside_frame *frame, error *err)
{
    return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for %u out of turn",
                frame->kind, frame->id);
}

/* Keeps the first failure, in init's words, cut to what an error can hold. */
static void note_failure(error *failure, const struct inside_frame *frame,
                         const struct inside_done *done, const unsigned char *payload)
{
    if (done->os == 0 || failure->code != ERR_NONE)
        return;
    int length = (int) (frame->size - sizeof *done);
    const char *why = strerrordesc_np(done->os);
    if (length > 0)
        (void) fail(failure, ERR_SYSTEM, "%.*s", length, (const char *) payload + sizeof *done);
    else
        (void) fail(failure, ERR_SYSTEM, "%s", why ? why : "unknown error");
    failure->os = done->os;
}

/* What was to come is told as missing: a folder that could not be read is no empty folder. */
static void note_collect_failure(struct harvest *harvest, const struct inside_frame *frame,
                                 const struct inside_done *done, const unsigned char *payload)
{
    error cause = { 0 };
    note_failure(&cause, frame, done, payload);
    if (cause.code == ERR_NONE)
        return;
    char message[DENIAL_MESSAGE_SIZE];
    (void) snprintf(message, sizeof message, "not all files could be collected: %.*s",
                    text_head(cause.text, 180), cause.text);
    denials_add(&harvest->denials, "artifact", "/workspace", message, 1);
}

static int take_done(struct harvest *harvest, const struct inside_frame *frame,
                     const unsigned char *payload, error *err)
{
    struct inside_done done;
    memcpy(&done, payload, sizeof done);
    bool is_load = frame->id == ID_SEAL || frame->id >= ID_FIRST_FILE;
    if (harvest->phase != HARVEST_COLLECTING && is_load && harvest->loads_open > 0) {
        note_failure(&harvest->load_failure, frame, &done, payload);
        return --harvest->loads_open == 0 ? HARVEST_LOADED : HARVEST_NOTHING;
    }
    if (harvest->phase == HARVEST_RUNNING && harvest->running != 0 &&
        frame->id == harvest->running && !harvest->has_started && done.os != 0) {
        harvest->running = 0;
        note_failure(&harvest->start_failure, frame, &done, payload);
        return HARVEST_NOT_STARTED;
    }
    if (harvest->phase == HARVEST_COLLECTING && frame->id == ID_COLLECT && !harvest->file_is_open) {
        note_collect_failure(harvest, frame, &done, payload);
        return HARVEST_COLLECTED;
    }
    return out_of_turn(frame, err);
}

static int take_started(struct harvest *harvest, const struct inside_frame *frame,
                        const unsigned char *payload, error *err)
{
    (void) payload;
    if (frame->id != harvest->running || harvest->has_started)
        return out_of_turn(frame, err);
    harvest->has_started = true;
    return HARVEST_STARTED;
}

static int take_output(struct harvest *harvest, const struct inside_frame *frame,
                       const unsigned char *payload, error *err)
{
    if (frame->id != ID_PROGRAM && frame->id != ID_COMPILER && frame->id != ID_INTERPRETER)
        return out_of_turn(frame, err);
    if (frame->id != ID_INTERPRETER && harvest->phase == HARVEST_COLLECTING)
        return out_of_turn(frame, err);
    output_add(&harvest->output[frame->stream - 1], payload, frame->size);
    return HARVEST_PRINTED;
}

static int take_exited(struct harvest *harvest, const struct inside_frame *frame,
                       const unsigned char *payload, error *err)
{
    if (frame->id == ID_INTERPRETER && harvest->running == ID_INTERPRETER && harvest->has_exited)
        return HARVEST_NOTHING; /* it has told its end before, by EXECUTED */
    if (frame->id != harvest->running || !harvest->has_started || harvest->has_exited ||
        harvest->phase != HARVEST_RUNNING)
        return out_of_turn(frame, err);
    memcpy(&harvest->exited, payload, sizeof harvest->exited);
    const struct inside_exited *exited = &harvest->exited;
    if (exited->signal < 0 || exited->signal > 64 || exited->exit_code < -1 ||
        exited->exit_code > 255 || (exited->signal != 0) != (exited->exit_code == -1))
        return fail(err, ERR_PROTOCOL, "glovebox-init told of exit code %d with signal %d",
                    exited->exit_code, exited->signal);
    harvest->has_exited = true;
    return HARVEST_ENDED;
}

static void drop_result(struct harvest *harvest)
{
    shown_done(&harvest->shown);
    harvest->shown_bytes = 0;
}

/* The object has come whole. What was none is left out: it came from the program itself. */
static int keep_result(struct harvest *harvest)
{
    struct bytes *results = &harvest->results;
    size_t before = results->size;
    if (harvest->shown_as == INSIDE_RESULT_ERROR) {
        auto_bytes text = { 0 };
        if (shown_write_failure(&harvest->shown, &text)) {
            bytes_done(&harvest->failure);
            harvest->failure = text;
            text = (struct bytes){ 0 };
        }
    } else {
        bytes_add_text(results, before > 0 ? ",\t" : "");
        if (!shown_write(&harvest->shown, results, harvest->shown_as == INSIDE_RESULT_VALUE))
            results->size = before;
    }
    drop_result(harvest);
    return HARVEST_PRINTED;
}

bool harvest_is_flood(const struct harvest *harvest)
{
    return harvest->results_told > (uint64_t) RESULT_BYTES_MOST * RESULTS_FLOOD;
}

/* Too large to show, and told so; the code's output and files are not touched. */
static int leave_result_out(struct harvest *harvest, bool is_last)
{
    drop_result(harvest);
    harvest->piece_is_cut = !is_last;
    if (!is_last)
        return HARVEST_NOTHING;
    denials_add(&harvest->denials, "output", "results",
                "values and figures of a run have 8 MiB together, and this did not fit; save large "
                "ones as files in /workspace",
                1);
    return HARVEST_PRINTED;
}

static int take_result(struct harvest *harvest, const struct inside_frame *frame,
                       const unsigned char *payload, error *err)
{
    struct inside_result result;
    memcpy(&result, payload, sizeof result);
    if (harvest->running != ID_INTERPRETER)
        return out_of_turn(frame, err);
    harvest->results_told += sizeof *frame + frame->size;
    /* A process that the code has forked shares its socket, and may speak after its end. */
    if (harvest->has_exited || result.what < INSIDE_RESULT_VALUE ||
        result.what > INSIDE_RESULT_ERROR)
        return HARVEST_NOTHING;
    size_t size = frame->size - sizeof result;
    if (harvest_is_flood(harvest))
        return HARVEST_PRINTED;
    if (harvest->piece_is_cut || harvest->results_looked + size > RESULT_BYTES_LOOKED ||
        harvest->results.size + harvest->shown_bytes + size > RESULT_BYTES_MOST)
        return leave_result_out(harvest, result.last);
    if (harvest->shown_bytes == 0) {
        harvest->shown_as = (enum inside_result_what) result.what;
        shown_begin(&harvest->shown, result.what == INSIDE_RESULT_ERROR);
    }
    harvest->shown_bytes += size;
    harvest->results_looked += size;
    shown_take(&harvest->shown, (const char *) payload + sizeof result, size);
    return result.last ? keep_result(harvest) : HARVEST_NOTHING;
}

/* The end of the code in a forked interpreter. It is that code's word, as an exit code always is.
 */
static int take_executed(struct harvest *harvest, const struct inside_frame *frame,
                         const unsigned char *payload, error *err)
{
    struct inside_executed executed;
    (void) err;
    memcpy(&executed, payload, sizeof executed);
    harvest->results_told += sizeof *frame + frame->size;
    if (harvest->running != ID_INTERPRETER || harvest->has_exited)
        return HARVEST_NOTHING;
    if (!inside_is_end(&executed))
        return HARVEST_PRINTED;
    bool is_signal = executed.signal > 0 && executed.signal <= 64;
    harvest->exited.exit_code = is_signal ? -1 : executed.exit_code;
    harvest->exited.signal = is_signal ? executed.signal : 0;
    harvest->has_exited = true;
    return HARVEST_ENDED;
}

static int take_credit(struct harvest *harvest, const struct inside_frame *frame,
                       const unsigned char *payload, error *err)
{
    (void) harvest;
    (void) frame;
    (void) payload;
    (void) err;
    return HARVEST_NOTHING; /* all of stdin was sent within the first credit */
}

static int take_measured(struct harvest *harvest, const struct inside_frame *frame,
                         const unsigned char *payload, error *err)
{
    (void) err;
    memcpy(&harvest->measured, payload, sizeof harvest->measured);
    harvest->has_measured = true;
    harvest->has_stopped |= frame->kind == INSIDE_STOPPED;
    return frame->kind == INSIDE_STOPPED ? HARVEST_STOPPED : HARVEST_NOTHING;
}

static int take_file(struct harvest *harvest, const struct inside_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || harvest->file_is_open)
        return out_of_turn(frame, err);
    memcpy(&harvest->file, payload, sizeof harvest->file);
    size_t length = frame->size - sizeof harvest->file;
    char *path = strndup((const char *) payload + sizeof harvest->file, length);
    if (!path)
        return fail(err, ERR_SYSTEM, "no memory for the name of an artifact");
    free(harvest->file_path);
    harvest->file_path = path;
    if (strlen(path) != length || request_check_path(path, length, err) < 0)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent an artifact with a name that is none");
    if (harvest->artifact_count >= harvest->limits->artifact_files ||
        harvest->file.size > harvest->limits->artifacts - harvest->file_bytes)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent more artifacts than the limit");
    harvest->file_bytes += harvest->file.size;
    if (blob_begin(harvest->blobs, &harvest->owner, &harvest->writer, err) < 0)
        return -1;
    harvest->file_is_open = true;
    return HARVEST_NOTHING;
}

static int take_data(struct harvest *harvest, const struct inside_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || !harvest->file_is_open)
        return out_of_turn(frame, err);
    if (frame->size > harvest->file.size - harvest->writer.size)
        return fail(err, ERR_PROTOCOL,
                    "glovebox-init sent an artifact that is longer than it said");
    return blob_add(&harvest->writer, payload, frame->size, err) < 0 ? -1 : HARVEST_NOTHING;
}

static struct artifact *add_artifact(struct harvest *harvest)
{
    if (harvest->artifact_count == harvest->artifact_room) {
        size_t room = harvest->artifact_room > 0 ? harvest->artifact_room * 2 : 8;
        struct artifact *larger = realloc(harvest->artifacts, room * sizeof *larger);
        if (!larger)
            return NULL;
        harvest->artifacts = larger;
        harvest->artifact_room = room;
    }
    return &harvest->artifacts[harvest->artifact_count];
}

static int take_end(struct harvest *harvest, const struct inside_frame *frame,
                    const unsigned char *payload, error *err)
{
    (void) payload;
    if (frame->id != ID_COLLECT || !harvest->file_is_open)
        return out_of_turn(frame, err);
    harvest->file_is_open = false;
    struct artifact *artifact = add_artifact(harvest);
    if (!artifact) {
        blob_abandon(&harvest->writer);
        return fail(err, ERR_SYSTEM, "no memory for an artifact");
    }
    artifact->size = harvest->writer.size;
    artifact->mime = mime_of(harvest->file_path, harvest->writer.head, harvest->writer.head_size);
    int kept = blob_keep(&harvest->writer, artifact->mime, artifact->sha256, err);
    if (kept < 0)
        return -1;
    artifact->was_known = kept == BLOB_KNOWN;
    artifact->path = harvest->file_path;
    harvest->file_path = NULL;
    harvest->artifact_count++;
    return HARVEST_PRINTED;
}

static int take_skipped(struct harvest *harvest, const struct inside_frame *frame,
                        const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || harvest->file_is_open)
        return out_of_turn(frame, err);
    struct inside_skipped skipped;
    memcpy(&skipped, payload, sizeof skipped);
    harvest->artifacts_cut |= skipped.reason == INSIDE_SKIP_BYTES;
    harvest->artifact_files_cut |= skipped.reason == INSIDE_SKIP_COUNT;
    denials_add_skipped(&harvest->denials, &skipped, (const char *) payload + sizeof skipped,
                        frame->size - sizeof skipped);
    return HARVEST_PRINTED;
}

static int take_denial(struct harvest *harvest, const struct inside_frame *frame,
                       const unsigned char *payload, error *err)
{
    (void) frame;
    (void) err;
    struct inside_denial denial;
    memcpy(&denial, payload, sizeof denial);
    denials_add_call(&harvest->denials, &denial, harvest->policy);
    return HARVEST_PRINTED;
}

/* Everything that may come during a run. What has no row was never asked for. */
static const struct row {
    unsigned phases;
    int (*take)(struct harvest *, const struct inside_frame *, const unsigned char *, error *);
} rows[] = {
    /* clang-format off */
    [INSIDE_DONE]     = { HARVEST_LOADING | HARVEST_RUNNING | HARVEST_COLLECTING, take_done },
    [INSIDE_STARTED]  = { HARVEST_RUNNING,                        take_started },
    [INSIDE_OUTPUT]   = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_output },
    [INSIDE_RESULT]   = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_result },
    [INSIDE_EXECUTED] = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_executed },
    [INSIDE_CREDIT]   = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_credit },
    [INSIDE_EXITED]   = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_exited },
    [INSIDE_STOPPED]  = { HARVEST_RUNNING,                        take_measured },
    [INSIDE_MEASURED] = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_measured },
    [INSIDE_DENIAL]   = { HARVEST_RUNNING | HARVEST_COLLECTING,   take_denial },
    [INSIDE_FILE]     = { HARVEST_COLLECTING,                     take_file },
    [INSIDE_DATA]     = { HARVEST_COLLECTING,                     take_data },
    [INSIDE_END]      = { HARVEST_COLLECTING,                     take_end },
    [INSIDE_SKIPPED]  = { HARVEST_COLLECTING,                     take_skipped },
    /* clang-format on */
};

int harvest_frame(struct harvest *harvest, const struct inside_frame *frame,
                  const unsigned char *payload, error *err)
{
    if (frame->kind >= COUNT_OF(rows) || !rows[frame->kind].take ||
        !(rows[frame->kind].phases & harvest->phase))
        return out_of_turn(frame, err);
    return rows[frame->kind].take(harvest, frame, payload, err);
}
