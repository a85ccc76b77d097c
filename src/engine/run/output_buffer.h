/* output_buffer.h - keeps what a program printed, within its limit.
 *
 * Up to the limit everything is kept. Beyond it the first 60 % and the last 40 % of the limit are
 * kept, exact to the byte, with a marker line between them that says how much is missing. The head
 * never changes once it has come, so clients may read it at once; the rest is final at the end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct output {
    uint64_t limit;
    uint64_t total; /* bytes that the program wrote */
    size_t head_max, tail_max;
    char *head;
    size_t head_size, head_room;
    char *tail; /* a ring buffer once it is full */
    size_t tail_size, tail_room, tail_next;
    bool starved; /* gloveboxd ran out of memory: bytes are missing */
};

void output_init(struct output *output, uint64_t limit);
void output_done(struct output *output);
void output_add(struct output *output, const void *data, size_t size);

bool output_is_truncated(const struct output *output);
bool output_is_flood(const struct output *output); /* more than 16 times the limit */

enum { OUTPUT_PARTS = 4, OUTPUT_MARKER_MAX = 200 };

/* One piece of what is kept. `output_parts` gives head, marker, older tail, newer tail, in order,
 * including empty ones. The marker is written into `marker`; it is empty if nothing is missing. */
struct output_part {
    const char *data;
    size_t size;
};

void output_parts(const struct output *output, const char *stream, char marker[OUTPUT_MARKER_MAX],
                  struct output_part parts[OUTPUT_PARTS]);
