/* run_events_sse.h - a run as a stream of server-sent events.
 *
 * started, stdout, stderr, result, denial, artifact, error, end
 *
 * The id of each event is the position after it: a client whose connection broke sends the last id
 * that it saw and continues from there, exact to the byte. A slow reader, or one that does not
 * read, costs one block and delays nothing. */
#pragma once

#include "base/bytes.h"
#include "engine/service/service_runs.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_stream {
    struct watch *watch;
    struct bytes pending; /* one event that is being sent, without the watch's bytes */
    struct {
        const struct bytes *in;
        size_t from, size;
        size_t at; /* where they belong in `pending` */
    } borrowed;
    size_t sent; /* bytes of both together */
    bool is_over;
};

void events_open(struct event_stream *stream, struct watch *watch);
void events_done(struct event_stream *stream);

/* Copies the next bytes. Returns how many, 0 if there are none now, -1 after `end`. */
ssize_t events_read(struct event_stream *stream, char *bytes, size_t size);
