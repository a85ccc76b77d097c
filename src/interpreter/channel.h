/* channel.h - the interpreter's side of its socket to init. Knows nothing of Python.
 *
 * A program may close the socket, or open something else under its number: then nothing is sent,
 * and init sees the end of the process instead. A child that the program forks is not the
 * interpreter that init knows: its copy is closed. */
#pragma once

#include "contract/agent.h"

#include <stddef.h>
#include <sys/types.h>

/* From now on `fd` is the channel. Call once, and again in a restored interpreter. */
void channel_open(int fd);

/* Waits for a frame, head and payload, of at most `room` bytes. Returns its size; 0 when init has
 * ended; -1 with errno, EINTR included.
 * Gives  *ret_descriptor that came with it, which the caller closes; -1: none. */
ssize_t channel_receive(void *frame, size_t room, int *ret_descriptor);

/* Sends one JSON object as RESULT frames; nothing if the channel is closed. */
void channel_send_result(uint32_t id, uint16_t what, const char *json, size_t size);

/* Holds the value of a cell, after which EXECUTED is expected: both are sent in one message. If a
 * RESULT follows instead, the value is sent before it. */
void channel_hold_value(uint32_t id, const char *json, size_t size);

void channel_send_executed(uint32_t id, const struct agent_executed *executed);
