/* collector.c - a row for each frame: when it may come, and its handler. */
#include "engine/run/collector.h"

#include "base/table.h"
#include "base/text.h"
#include "engine/run/run_request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All handlers have one signature, and some use only a part of it. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Bounds for the results of a run: how much is kept, how much is parsed (text that is not ASCII
 * comes as escapes, twice as long as stored), and which multiple is a flood. */
enum {
    RESULT_BYTES_MAX = 8 * 1024 * 1024,
    RESULT_BYTES_LOOKED = 2 * RESULT_BYTES_MAX,
    RESULTS_FLOOD = 16,
    HELD_MAX = 64 * 1024, /* of a file in memory before it is written */
    BLOCK = 4096
};

void collector_init(struct collector *collector, const struct limits *limits, const char *policy,
                    struct blob_store *blobs)
{
    *collector = (struct collector){ .phase = COLLECTOR_LOADING,
                                     .limits = limits,
                                     .policy = policy,
                                     .blobs = blobs,
                                     .owner = { "", "" } };
    collector->writer.fd = -1;
    for_each(output, collector->output)
        output_init(output, limits->output);
}

static void leave_out_from(struct collector *collector, size_t count)
{
    while (collector->artifact_count > count) {
        struct artifact *artifact = &collector->artifacts[--collector->artifact_count];
        if (collector->artifact_count >= collector->kept)
            blob_abandon(&artifact->writer);
        free(artifact->path);
    }
}

void collector_write(struct collector *collector)
{
    error *err = &collector->write_failure;
    for (; collector->written < collector->artifact_count; collector->written++) {
        struct artifact *artifact = &collector->artifacts[collector->written];
        if (!artifact->was_known && blob_write(&artifact->writer, artifact->sha256, err) < 0)
            return;
    }
    if (collector->file_is_open && collector->writer.held.size > HELD_MAX)
        (void) blob_write(&collector->writer, NULL, err);
}

int collector_keep(struct collector *collector, error *err)
{
    *err = collector->write_failure;
    for (; collector->kept < collector->written; collector->kept++) {
        struct artifact *artifact = &collector->artifacts[collector->kept];
        int kept = artifact->was_known
                       ? BLOB_KNOWN
                       : blob_keep(&artifact->writer, artifact->mime, artifact->sha256, err);
        if (kept < 0)
            break;
        artifact->was_known = kept == BLOB_KNOWN;
    }
    collector->unwritten = 0;
    if (err->code == ERR_NONE)
        return 0;
    leave_out_from(collector, collector->kept);
    return -1;
}

void collector_done(struct collector *collector)
{
    for_each(output, collector->output)
        output_done(output);
    if (collector->file_is_open)
        blob_abandon(&collector->writer);
    free(collector->file_path);
    leave_out_from(collector, 0);
    free(collector->artifacts);
    denials_done(&collector->denials);
    bytes_done(&collector->results);
    display_data_done(&collector->display_data);
    bytes_done(&collector->failure);
    *collector = (struct collector){ 0 };
}

void collector_discard(struct collector *collector)
{
    for (size_t i = 0; i < collector->artifact_count; i++)
        if (!collector->artifacts[i].was_known)
            blob_forget(collector->blobs, collector->owner.name, collector->artifacts[i].sha256);
    collector_done(collector);
}

static int out_of_turn(const struct agent_frame *frame, error *err)
{
    /* The interpreter was killed while it was parked, or before it got the code. */
    if (frame->id == ID_INTERPRETER && (frame->kind == AGENT_EXITED || frame->kind == AGENT_DONE))
        return fail(err, ERR_UNAVAILABLE,
                    "the interpreter ended before the code began; run it again");
    return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for %u out of sequence",
                frame->kind, frame->id);
}

/* Keeps the first failure, in init's words, cut to the size of an error. */
static void note_failure(error *failure, const struct agent_frame *frame,
                         const struct agent_done *done, const unsigned char *payload)
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

/* Missing files are reported: a folder that could not be read is not an empty one. */
static void note_collect_failure(struct collector *collector, const struct agent_frame *frame,
                                 const struct agent_done *done, const unsigned char *payload)
{
    error cause = { 0 };
    note_failure(&cause, frame, done, payload);
    if (cause.code == ERR_NONE)
        return;
    char message[DENIAL_MESSAGE_SIZE];
    (void) snprintf(message, sizeof message, "not all files could be collected: %.*s",
                    text_head(cause.text, 180), cause.text);
    denials_add(&collector->denials, DENIAL_READ, "/workspace", message, 1);
}

static int take_done(struct collector *collector, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    struct agent_done done;
    memcpy(&done, payload, sizeof done);
    bool is_load = frame->id == ID_SEAL || frame->id >= ID_FIRST_FILE;
    if (collector->phase != COLLECTOR_COLLECTING && is_load && collector->loads_open > 0) {
        note_failure(&collector->load_failure, frame, &done, payload);
        return --collector->loads_open == 0 ? COLLECTOR_LOADED : COLLECTOR_NOTHING;
    }
    if (collector->phase == COLLECTOR_RUNNING && collector->running != 0 &&
        frame->id == collector->running && !collector->has_started && done.os != 0) {
        collector->running = 0;
        note_failure(&collector->start_failure, frame, &done, payload);
        return COLLECTOR_NOT_STARTED;
    }
    if (collector->phase == COLLECTOR_COLLECTING && frame->id == ID_COLLECT &&
        !collector->file_is_open) {
        note_collect_failure(collector, frame, &done, payload);
        return COLLECTOR_COLLECTED;
    }
    return out_of_turn(frame, err);
}

static int take_started(struct collector *collector, const struct agent_frame *frame,
                        const unsigned char *payload, error *err)
{
    if (frame->id != collector->running || collector->has_started)
        return out_of_turn(frame, err);
    collector->has_started = true;
    return COLLECTOR_STARTED;
}

static int take_output(struct collector *collector, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    if (frame->id != ID_PROGRAM && frame->id != ID_COMPILER && frame->id != ID_INTERPRETER)
        return out_of_turn(frame, err);
    if (frame->id != ID_INTERPRETER && collector->phase == COLLECTOR_COLLECTING)
        return out_of_turn(frame, err);
    output_add(&collector->output[frame->stream - 1], payload, frame->size);
    return COLLECTOR_PRINTED;
}

static int take_exited(struct collector *collector, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    if (frame->id == ID_INTERPRETER && collector->running == ID_INTERPRETER &&
        collector->has_exited)
        return COLLECTOR_NOTHING; /* its end came before, with EXECUTED */
    if (frame->id != collector->running || !collector->has_started || collector->has_exited ||
        collector->phase != COLLECTOR_RUNNING)
        return out_of_turn(frame, err);
    memcpy(&collector->exited, payload, sizeof collector->exited);
    const struct agent_exited *exited = &collector->exited;
    if (exited->signal < 0 || exited->signal > 64 || exited->exit_code < -1 ||
        exited->exit_code > 255 || (exited->signal != 0) != (exited->exit_code == -1))
        return fail(err, ERR_PROTOCOL, "glovebox-init told of exit code %d with signal %d",
                    exited->exit_code, exited->signal);
    collector->has_exited = true;
    return COLLECTOR_ENDED;
}

static void drop_result(struct collector *collector)
{
    display_data_done(&collector->display_data);
    collector->display_data_bytes = 0;
}

/* A result that is too large or invalid is dropped with a notice; output and files of the code are
 * kept. */
static int leave_result_out(struct collector *collector, bool is_last)
{
    drop_result(collector);
    collector->piece_is_cut = !is_last;
    if (!is_last)
        return COLLECTOR_NOTHING;
    denials_add(
        &collector->denials, DENIAL_RESULTS, "results",
        "values and figures of a run have 8 MiB and 100,000 numbers and texts together, "
        "nested 25 levels deep, and this did not fit or was no JSON; save large ones as files "
        "in /workspace",
        1);
    return COLLECTOR_PRINTED;
}

/* The object is complete. The program itself may have sent it. */
static int keep_result(struct collector *collector)
{
    struct bytes *results = &collector->results;
    size_t before = results->size;
    if (collector->display_data_as == AGENT_RESULT_ERROR) {
        auto_bytes text = { 0 };
        if (display_data_write_failure(&collector->display_data, &text)) {
            bytes_done(&collector->failure);
            collector->failure = text;
            text = (struct bytes){ 0 };
        }
    } else {
        bytes_add_text(results, before > 0 ? ",\t" : "");
        bool is_main = collector->display_data_as == AGENT_RESULT_VALUE;
        if (!display_data_write(&collector->display_data, results, is_main)) {
            results->size = before;
            return leave_result_out(collector, true);
        }
        if (is_main)
            collector->text = collector->display_data.plain;
        collector->result_values = collector->display_data.copy.values;
    }
    drop_result(collector);
    return COLLECTOR_PRINTED;
}

bool collector_is_flood(const struct collector *collector)
{
    return collector->results_told > (uint64_t) RESULT_BYTES_MAX * RESULTS_FLOOD;
}

static int take_result(struct collector *collector, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    struct agent_result result;
    memcpy(&result, payload, sizeof result);
    if (collector->running != ID_INTERPRETER)
        return out_of_turn(frame, err);
    collector->results_told += sizeof *frame + frame->size;
    /* A child of the code shares its socket, and may send after its end. */
    if (collector->has_exited || result.what < AGENT_RESULT_VALUE ||
        result.what > AGENT_RESULT_ERROR)
        return COLLECTOR_NOTHING;
    size_t size = frame->size - sizeof result;
    if (collector_is_flood(collector))
        return COLLECTOR_PRINTED;
    if (collector->piece_is_cut || collector->results_looked + size > RESULT_BYTES_LOOKED ||
        collector->results.size + collector->display_data_bytes + size > RESULT_BYTES_MAX)
        return leave_result_out(collector, result.last);
    if (collector->display_data_bytes == 0) {
        collector->display_data_as = (enum agent_result_what) result.what;
        display_data_begin(&collector->display_data, result.what == AGENT_RESULT_ERROR);
        if (result.what != AGENT_RESULT_ERROR)
            collector->display_data.copy.values = collector->result_values;
    }
    collector->display_data_bytes += size;
    collector->results_looked += size;
    display_data_take(&collector->display_data, (const char *) payload + sizeof result, size);
    return result.last ? keep_result(collector) : COLLECTOR_NOTHING;
}

/* The end of the code in a forked interpreter: as with any exit code, the code may have chosen
 * it. */
static int take_executed(struct collector *collector, const struct agent_frame *frame,
                         const unsigned char *payload, error *err)
{
    struct agent_executed executed;
    memcpy(&executed, payload, sizeof executed);
    collector->results_told += sizeof *frame + frame->size;
    if (collector->running != ID_INTERPRETER || collector->has_exited)
        return COLLECTOR_NOTHING;
    if (!agent_is_end(&executed))
        return COLLECTOR_PRINTED;
    bool is_signal = executed.signal > 0 && executed.signal <= 64;
    collector->exited.exit_code = is_signal ? -1 : executed.exit_code;
    collector->exited.signal = is_signal ? executed.signal : 0;
    collector->has_exited = true;
    return COLLECTOR_ENDED;
}

static int take_credit(struct collector *collector, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    return COLLECTOR_NOTHING; /* all of stdin was sent with the first credit */
}

static int take_measured(struct collector *collector, const struct agent_frame *frame,
                         const unsigned char *payload, error *err)
{
    memcpy(&collector->measured, payload, sizeof collector->measured);
    collector->has_measured = true;
    collector->has_stopped |= frame->kind == AGENT_STOPPED;
    return frame->kind == AGENT_STOPPED ? COLLECTOR_STOPPED : COLLECTOR_NOTHING;
}

static int take_file(struct collector *collector, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || collector->file_is_open)
        return out_of_turn(frame, err);
    memcpy(&collector->file, payload, sizeof collector->file);
    size_t length = frame->size - sizeof collector->file;
    char *path = strndup((const char *) payload + sizeof collector->file, length);
    if (!path)
        return fail(err, ERR_SYSTEM, "no memory for the name of an artifact");
    free(collector->file_path);
    collector->file_path = path;
    if (strlen(path) != length || request_check_path(path, length, err) < 0)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent an artifact with a name that is none");
    if (collector->artifact_count >= collector->limits->artifact_files ||
        collector->file.size > collector->limits->artifacts - collector->file_bytes)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent more artifacts than the limit");
    collector->file_bytes += collector->file.size;
    blob_begin(collector->blobs, &collector->owner, &collector->writer);
    collector->file_is_open = true;
    return COLLECTOR_NOTHING;
}

static int take_data(struct collector *collector, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || !collector->file_is_open)
        return out_of_turn(frame, err);
    if (frame->size > collector->file.size - collector->writer.size)
        return fail(err, ERR_PROTOCOL,
                    "glovebox-init sent an artifact that is longer than it said");
    collector->unwritten += frame->size;
    return blob_add(&collector->writer, payload, frame->size, err) < 0 ? -1 : COLLECTOR_NOTHING;
}

static struct artifact *add_artifact(struct collector *collector)
{
    if (collector->artifact_count == collector->artifact_room) {
        size_t room = collector->artifact_room > 0 ? collector->artifact_room * 2 : 8;
        struct artifact *larger = realloc(collector->artifacts, room * sizeof *larger);
        if (!larger)
            return NULL;
        collector->artifacts = larger;
        collector->artifact_room = room;
    }
    return &collector->artifacts[collector->artifact_count];
}

static int take_end(struct collector *collector, const struct agent_frame *frame,
                    const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || !collector->file_is_open)
        return out_of_turn(frame, err);
    collector->file_is_open = false;
    struct artifact *artifact = add_artifact(collector);
    if (!artifact) {
        blob_abandon(&collector->writer);
        return fail(err, ERR_SYSTEM, "no memory for an artifact");
    }
    artifact->size = collector->writer.size;
    artifact->mime =
        mime_of(collector->file_path, collector->writer.head, collector->writer.head_size);
    artifact->was_known =
        blob_name(&collector->writer, artifact->mime, artifact->sha256) == BLOB_KNOWN;
    collector->unwritten += BLOCK;
    artifact->writer = collector->writer;
    collector->writer.held = (struct bytes){ 0 };
    artifact->path = collector->file_path;
    collector->file_path = NULL;
    collector->artifact_count++;
    return COLLECTOR_PRINTED;
}

static int take_skipped(struct collector *collector, const struct agent_frame *frame,
                        const unsigned char *payload, error *err)
{
    if (frame->id != ID_COLLECT || collector->file_is_open)
        return out_of_turn(frame, err);
    struct agent_skipped skipped;
    memcpy(&skipped, payload, sizeof skipped);
    collector->artifacts_cut |= skipped.reason == AGENT_SKIP_BYTES;
    collector->artifact_files_cut |= skipped.reason == AGENT_SKIP_COUNT;
    denials_add_skipped(&collector->denials, &skipped, (const char *) payload + sizeof skipped,
                        frame->size - sizeof skipped);
    return COLLECTOR_PRINTED;
}

static int take_denial(struct collector *collector, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    struct agent_denial denial;
    memcpy(&denial, payload, sizeof denial);
    denials_add_call(&collector->denials, &denial, collector->policy);
    return COLLECTOR_PRINTED;
}

/* All frames that may come during a run. A frame without a row breaks the protocol. */
static const struct row {
    unsigned phases;
    int (*take)(struct collector *, const struct agent_frame *, const unsigned char *, error *);
} rows[] = {
    [AGENT_DONE] = { COLLECTOR_LOADING | COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_done },
    [AGENT_STARTED] = { COLLECTOR_RUNNING, take_started },
    [AGENT_OUTPUT] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_output },
    [AGENT_RESULT] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_result },
    [AGENT_EXECUTED] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_executed },
    [AGENT_CREDIT] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_credit },
    [AGENT_EXITED] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_exited },
    [AGENT_STOPPED] = { COLLECTOR_RUNNING, take_measured },
    [AGENT_MEASURED] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_measured },
    [AGENT_DENIAL] = { COLLECTOR_RUNNING | COLLECTOR_COLLECTING, take_denial },
    [AGENT_FILE] = { COLLECTOR_COLLECTING, take_file },
    [AGENT_DATA] = { COLLECTOR_COLLECTING, take_data },
    [AGENT_END] = { COLLECTOR_COLLECTING, take_end },
    [AGENT_SKIPPED] = { COLLECTOR_COLLECTING, take_skipped },
};

int collector_frame(struct collector *collector, const struct agent_frame *frame,
                    const unsigned char *payload, error *err)
{
    if (frame->kind >= COUNT_OF(rows) || !rows[frame->kind].take ||
        !(rows[frame->kind].phases & collector->phase))
        return out_of_turn(frame, err);
    return rows[frame->kind].take(collector, frame, payload, err);
}
