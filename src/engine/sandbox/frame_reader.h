/* frame_reader.h - splits the stream of a sandbox's init into frames.
 *
 * Once user code runs any byte may be hostile: a kind that init may not send, a size outside its
 * row, an unexpected field, a missing or second hello end the sandbox. Whether a frame is expected
 * is checked by collector.h. No descriptor, no clock: fuzzed as it is (tests/fuzz/agent_fuzz.c). */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

#include <stdbool.h>
#include <stddef.h>

struct frame_reader {
    bool said_hello;
    struct agent_hello hello;
    size_t size; /* bytes in `data` of an incomplete frame */
    unsigned char data[2 * (sizeof(struct agent_frame) + AGENT_PAYLOAD_MAX)];
};

/* Called for each frame except the hello. The payload is borrowed for the call. Returns -1 with
 * *err if the frame is not allowed now, 1 to stop reading. */
typedef int agent_frame_came(void *context, const struct agent_frame *frame,
                             const unsigned char *payload, error *err);

/* Where to put the next bytes of the stream, and how many: at least one. */
unsigned char *frame_reader_room(struct frame_reader *reader, size_t *ret_room);

/* `size` bytes were put there. Returns 0, 1 if the handler stopped, -1 with ERR_PROTOCOL. */
int frame_reader_took(struct frame_reader *reader, size_t size, agent_frame_came *came,
                      void *context, error *err);
