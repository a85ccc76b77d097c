/* run_events_sse.c - says what is new since the last look, in the order of the functions below. */
#include "doors/rest/run_events_sse.h"

#include "base/table.h"
#include "base/utf8.h"
#include "json/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 12 * 1024 };

static const char *const stream_names[] = { "stdout", "stderr" };

void events_open(struct event_stream *stream, struct run *run)
{
    *stream = (struct event_stream){ .run = run };
}

void events_done(struct event_stream *stream)
{
    bytes_done(&stream->pending);
}

static void begin(struct event_stream *stream, const char *name)
{
    bytes_print(&stream->pending, "event: %s\ndata: ", name);
}

/* However many read it and however slowly, there is one of it. */
static void lend(struct event_stream *stream, const struct bytes *of, size_t from, size_t size)
{
    stream->lent.of = of;
    stream->lent.from = from;
    stream->lent.size = size;
    stream->lent.at = stream->pending.size;
}

/* Positions as text: flags, stdout, stderr, results, denials, artifacts. */
enum { SAID_STARTED = 1, SAID_ERROR = 2, SAID_END = 4 };

static void end(struct event_stream *stream)
{
    unsigned said = (stream->said_started ? SAID_STARTED : 0U) |
                    (stream->said_error ? SAID_ERROR : 0U) | (stream->said_end ? SAID_END : 0U);
    bytes_print(&stream->pending, "\nid: %u-%" PRIu64 "-%" PRIu64 "-%zu-%zu-%zu\n\n", said,
                stream->output_at[0], stream->output_at[1], stream->result_at, stream->denial_at,
                stream->artifact_at);
}

int events_resume(struct event_stream *stream, const char *id, error *err)
{
    enum { FIELDS = 6 };
    uint64_t at[FIELDS];
    const char *text = id;
    for (int i = 0; i < FIELDS; i++) {
        char *stop;
        if (*text < '0' || *text > '9')
            return fail(err, ERR_BAD_REQUEST, "'%.60s' is not the id of an event of a run", id);
        errno = 0;
        at[i] = strtoull(text, &stop, 10);
        if (errno != 0 || at[i] > SIZE_MAX / 2 || *stop != (i + 1 < FIELDS ? '-' : '\0'))
            return fail(err, ERR_BAD_REQUEST, "'%.60s' is not the id of an event of a run", id);
        text = stop + 1;
    }
    stream->said_started = at[0] & SAID_STARTED;
    stream->said_error = at[0] & SAID_ERROR;
    stream->said_end = at[0] & SAID_END;
    stream->output_at[0] = at[1];
    stream->output_at[1] = at[2];
    stream->result_at = at[3];
    stream->denial_at = at[4];
    stream->artifact_at = at[5];
    return 0;
}

static bool say_started(struct event_stream *stream)
{
    if (stream->said_started || stream->run->started_us == 0)
        return false;
    stream->said_started = true;
    auto_bytes json = { 0 };
    json_open(&json, '{');
    json_string_field(&json, "id", stream->run->id);
    json_close(&json, '}');
    begin(stream, "started");
    bytes_add(&stream->pending, json.data, json.size);
    end(stream);
    return true;
}

/* Copies from several parts as if they were one text. */
static size_t copy_parts(const struct output_part *parts, size_t count, uint64_t from, char *block,
                         size_t size)
{
    size_t copied = 0;
    for (size_t i = 0; i < count && copied < size; i++) {
        if (from >= parts[i].size) {
            from -= parts[i].size;
            continue;
        }
        size_t here = parts[i].size - (size_t) from;
        if (here > size - copied)
            here = size - copied;
        memcpy(block + copied, parts[i].data + from, here);
        copied += here;
        from = 0;
    }
    return copied;
}

/* The head goes out as it comes. Marker and tail are known at the end only. */
static bool say_output(struct event_stream *stream, unsigned index)
{
    const struct run *run = stream->run;
    bool is_final = run->state == RUN_DONE;
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(&run->collector.output[index], stream_names[index], marker, parts);

    char block[BLOCK];
    size_t size = copy_parts(parts, is_final ? OUTPUT_PARTS : 1, stream->output_at[index], block,
                             sizeof block);
    size_t cut = utf8_cut_at_end(block, size);
    if (cut > 0 && (size == sizeof block || !is_final))
        size -= cut; /* its rest comes with the next look */
    if (size == 0)
        return false;
    stream->output_at[index] += size;

    auto_bytes json = { 0 };
    json_open(&json, '{');
    bool is_text = utf8_is_valid(block, size);
    json_key(&json, is_text ? "data" : "data_base64");
    if (is_text)
        json_text(&json, block, size);
    else
        json_base64(&json, block, size);
    json_close(&json, '}');
    begin(stream, stream_names[index]);
    bytes_add(&stream->pending, json.data, json.size);
    end(stream);
    return true;
}

static bool say_result(struct event_stream *stream)
{
    const struct bytes *results = &stream->run->collector.results;
    if (stream->result_at >= results->size)
        return false;
    const char *from = results->data + stream->result_at;
    size_t left = results->size - stream->result_at;
    if (left >= 2 && from[0] == ',' &&
        from[1] == '\t') { /* the one before was the last when it was told */
        stream->result_at += 2;
        from += 2;
        left -= 2;
    }
    const char *tab = memchr(from, '\t', left);
    begin(stream, "result");
    lend(stream, results, stream->result_at,
         tab ? (size_t) (tab - from) - 1 : left); /* without the comma */
    stream->result_at += tab ? (size_t) (tab - from) + 1 : left;
    end(stream);
    return true;
}

static bool say_denial(struct event_stream *stream)
{
    const struct denials *denials = &stream->run->collector.denials;
    if (stream->denial_at >= denials->count)
        return false;
    auto_bytes json = { 0 };
    result_write_denial(&denials->rows[stream->denial_at++], &json);
    begin(stream, "denial");
    bytes_add(&stream->pending, json.data, json.size);
    end(stream);
    return true;
}

static bool say_artifact(struct event_stream *stream)
{
    const struct collector *collector = &stream->run->collector;
    if (stream->artifact_at >= collector->artifact_count)
        return false;
    auto_bytes json = { 0 };
    result_write_artifact(&collector->artifacts[stream->artifact_at++], &json);
    begin(stream, "artifact");
    bytes_add(&stream->pending, json.data, json.size);
    end(stream);
    return true;
}

static bool say_error(struct event_stream *stream)
{
    const struct bytes *failure = &stream->run->collector.failure;
    if (stream->said_error || failure->size == 0)
        return false;
    stream->said_error = true;
    begin(stream, "error");
    bytes_add(&stream->pending, failure->data, failure->size);
    end(stream);
    return true;
}

static bool say_end(struct event_stream *stream)
{
    if (stream->said_end || stream->run->state != RUN_DONE)
        return false;
    stream->said_end = true;
    begin(stream, "end");
    lend(stream, &stream->run->result, 0, stream->run->result.size);
    end(stream);
    return true;
}

/* What the policy withholds until it has passed, no event tells before. */
static bool say_harvest(struct event_stream *stream)
{
    if (output_check_holds(stream->run))
        return stream->run->state == RUN_DONE && say_denial(stream);
    return say_output(stream, 0) || say_output(stream, 1) || say_result(stream) ||
           say_denial(stream) || say_artifact(stream) || say_error(stream);
}

/* Before its end only what has a beginning in the log; without one, all of it after the receipt. */
static bool may_say(const struct event_stream *stream)
{
    struct run *run = stream->run;
    error unsaid;
    return run->state == RUN_DONE || (run->started_us != 0 && run_tell_began(run, &unsaid) == 0);
}

static bool say_something(struct event_stream *stream)
{
    if (stream->run->has_harvest && may_say(stream) && (say_started(stream) || say_harvest(stream)))
        return true;
    return say_end(stream);
}

/* What comes next of the event: its beginning, what it lends, its end. Gives  how many bytes. */
static size_t next_piece(const struct event_stream *stream, const char **ret_data)
{
    size_t lent_end = stream->lent.at + stream->lent.size;
    if (stream->lent.size > 0 && stream->sent >= stream->lent.at && stream->sent < lent_end) {
        size_t done = stream->sent - stream->lent.at;
        *ret_data = stream->lent.of->data + stream->lent.from + done;
        return stream->lent.size - done;
    }
    bool is_before = stream->lent.size > 0 && stream->sent < stream->lent.at;
    size_t at = is_before ? stream->sent : stream->sent - stream->lent.size;
    *ret_data = stream->pending.data + at;
    return (is_before ? stream->lent.at : stream->pending.size) - at;
}

ssize_t events_read(struct event_stream *stream, char *bytes, size_t size)
{
    size_t copied = 0;
    while (copied < size) {
        if (stream->sent == stream->pending.size + stream->lent.size) {
            stream->pending.size = stream->sent = stream->lent.size = 0;
            if (!say_something(stream) || stream->pending.failed)
                break;
        }
        const char *piece;
        size_t here = next_piece(stream, &piece);
        if (here > size - copied)
            here = size - copied;
        memcpy(bytes + copied, piece, here);
        stream->sent += here;
        copied += here;
    }
    if (copied > 0)
        return (ssize_t) copied;
    return stream->said_end || stream->pending.failed ? -1 : 0;
}
