/* channel.h - the interpreter's side of its socket to init. Knows nothing of Python.
 *
 * A program may close the socket, or open something else under its number: what is not the socket
 * any more is left alone, and init sees the end of the process instead. A child that the program
 * forks is not the interpreter that init talks to: its copy is closed. */
#pragma once

#include "contract/agent.h"

#include <stddef.h>
#include <sys/types.h>

/* From now on `fd` is the channel. Call once, in the interpreter; again in one that was restored
 * from its image. */
void channel_open(int fd);

/* Waits for a frame, head and payload, of at most `room` bytes. Returns its size; 0 when init has
 * gone; -1 with errno, EINTR included.
 * Gives  *ret_descriptor, that came with it, the caller's; -1: none. */
ssize_t channel_receive(void *frame, size_t room, int *ret_descriptor);

/* Sends one JSON object as RESULT frames, all of them or, when the channel is gone, none. */
void channel_send_result(uint32_t id, uint16_t what, const char *json, size_t size);

/* The value of a cell, of which nothing is known to follow but EXECUTED: it goes with that in one
 * message, or before the next RESULT. */
void channel_hold_value(uint32_t id, const char *json, size_t size);

void channel_send_executed(uint32_t id, const struct agent_executed *executed);
