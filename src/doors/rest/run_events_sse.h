/* run_events_sse.h - a run as a stream of server-sent events.
 *
 *     started, stdout, stderr, result, denial, artifact, error, end
 *
 * Each event carries the positions behind it as its id: a reader whose connection broke off names
 * the last id that it saw and goes on from there, to the byte.
 *
 * The stream is a set of positions in what the run keeps anyway: a reader that is slow, or that
 * does not read at all, costs one block and holds up nothing. */
#pragma once

#include "base/bytes.h"
#include "engine/run/run.h"

#include <stdbool.h>
#include <sys/types.h>

struct event_stream {
    struct run *run;
    bool said_started, said_error, said_end;
    uint64_t output_at[2]; /* in head, marker and tail as one text */
    size_t denial_at, artifact_at, result_at;
    struct bytes pending; /* one event, on its way; what it lends is not in it */
    struct {
        const struct bytes *of; /* the run's own, which grow but never change */
        size_t from, size;
        size_t at; /* it stands here in `pending` */
    } lent;
    size_t sent; /* of both together */
};

void events_open(struct event_stream *stream, struct run *run);
/* Goes on behind the event with this id. Fails  ERR_BAD_REQUEST  if it is not one of ours; one that
 * lies beyond what there is just waits. */
int events_resume(struct event_stream *stream, const char *id, error *err);
void events_done(struct event_stream *stream);

/* Copies the next bytes. Returns how many, 0 if there is nothing new, -1 after `end`. */
ssize_t events_read(struct event_stream *stream, char *bytes, size_t size);
