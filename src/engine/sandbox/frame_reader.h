/* frame_reader.h - cuts the stream of a sandbox's init into frames.
 *
 * From the moment user code runs every byte may be hostile: a kind that init cannot say, a size
 * outside its row, a stray field, a missing or second hello end the sandbox. What a frame means in
 * the moment is checked by collector.h. No descriptor, no clock: fuzzed as it is
 * (tests/fuzz/agent_fuzz.c). */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

#include <stdbool.h>
#include <stddef.h>

struct frame_reader {
    bool said_hello;
    struct agent_hello hello;
    size_t size; /* bytes in `data` that are not a whole frame yet */
    unsigned char data[2 * (sizeof(struct agent_frame) + AGENT_PAYLOAD_MAX)];
};

/* Told once for each frame but the hello. The payload is borrowed for the call. Returns -1 with
 * *err if the frame may not come now, 1 to stop reading (the sandbox is given up). */
typedef int agent_frame_came(void *context, const struct agent_frame *frame,
                             const unsigned char *payload, error *err);

/* Where the next bytes of the stream go, and how many fit: never none. */
unsigned char *frame_reader_room(struct frame_reader *reader, size_t *ret_room);

/* `size` bytes have been put there. Returns 0, 1 if the handler stopped, -1 with ERR_PROTOCOL. */
int frame_reader_took(struct frame_reader *reader, size_t size, agent_frame_came *came,
                      void *context, error *err);
