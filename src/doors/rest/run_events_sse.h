/* run_events_sse.h - a run as a stream of server-sent events.
 *
 *     started, stdout, stderr, result, denial, artifact, error, end
 *
 * Each event carries the position behind it as its id: a reader whose connection broke off names
 * the last id that it saw and goes on from there, to the byte. A reader that is slow, or that does
 * not read at all, costs one block and holds up nothing. */
#pragma once

#include "base/bytes.h"
#include "engine/service/service_runs.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_stream {
    struct watch *watch;
    struct bytes pending; /* one event, on its way; what the watch lends is not in it */
    struct {
        const struct bytes *in;
        size_t from, size;
        size_t at; /* it stands here in `pending` */
    } borrowed;
    size_t sent; /* of both together */
    bool is_over;
};

void events_open(struct event_stream *stream, struct watch *watch);
void events_done(struct event_stream *stream);

/* Copies the next bytes. Returns how many, 0 if there is nothing new, -1 after `end`. */
ssize_t events_read(struct event_stream *stream, char *bytes, size_t size);
