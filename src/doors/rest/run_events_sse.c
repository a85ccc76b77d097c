/* run_events_sse.c - see run_events_sse.h. */
#include "doors/rest/run_events_sse.h"

#include "base/utf8.h"
#include "json/writer.h"

#include <string.h>

void events_open(struct event_stream *stream, struct watch *watch)
{
    *stream = (struct event_stream){ .watch = watch };
}

void events_done(struct event_stream *stream)
{
    bytes_done(&stream->pending);
}

/* The bytes are not copied, so the number and speed of readers does not matter. */
static void lend(struct event_stream *stream, const struct run_event *event)
{
    stream->borrowed.in = event->in;
    stream->borrowed.from = event->from;
    stream->borrowed.size = event->size;
    stream->borrowed.at = stream->pending.size;
    stream->pending.failed |= event->in->failed;
}

static void write_output(struct event_stream *stream, const struct run_event *event)
{
    const char *text = event->in->data + event->from;
    auto_bytes json = json_begin('{');
    bool is_text = utf8_is_valid(text, event->size);
    json_key(&json, is_text ? "data" : "data_base64");
    if (is_text)
        json_text(&json, text, event->size);
    else
        json_base64(&json, text, event->size);
    json_close(&json, '}');
    bytes_add(&stream->pending, json.data, json.size);
}

/* Returns false if there is no new event. */
static bool write_next(struct event_stream *stream)
{
    char position[WATCH_POSITION_SIZE];
    struct run_event event;
    int result = watch_next(stream->watch, &event);
    stream->is_over = result == WATCH_OVER;
    if (result != WATCH_EVENT)
        return false;
    bytes_print(&stream->pending, "event: %s\ndata: ", run_event_name(event.kind));
    if (event.kind == EVENT_STDOUT || event.kind == EVENT_STDERR)
        write_output(stream, &event);
    else
        lend(stream, &event);
    watch_position(stream->watch, position);
    bytes_print(&stream->pending, "\nid: %s\n\n", position);
    return true;
}

/* The next piece of the event: its beginning, the bytes that were lent, its end. Returns how many
 * bytes. */
static size_t next_piece(const struct event_stream *stream, const char **ret_data)
{
    size_t borrowed_end = stream->borrowed.at + stream->borrowed.size;
    if (stream->borrowed.size > 0 && stream->sent >= stream->borrowed.at &&
        stream->sent < borrowed_end) {
        size_t done = stream->sent - stream->borrowed.at;
        *ret_data = stream->borrowed.in->data + stream->borrowed.from + done;
        return stream->borrowed.size - done;
    }
    bool is_before = stream->borrowed.size > 0 && stream->sent < stream->borrowed.at;
    size_t at = is_before ? stream->sent : stream->sent - stream->borrowed.size;
    *ret_data = stream->pending.data + at;
    return (is_before ? stream->borrowed.at : stream->pending.size) - at;
}

ssize_t events_read(struct event_stream *stream, char *bytes, size_t size)
{
    size_t copied = 0;
    while (copied < size) {
        if (stream->sent == stream->pending.size + stream->borrowed.size) {
            stream->pending.size = stream->sent = stream->borrowed.size = 0;
            if (!write_next(stream) || stream->pending.failed)
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
    return stream->is_over || stream->pending.failed ? -1 : 0;
}
