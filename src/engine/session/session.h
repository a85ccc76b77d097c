/* session.h - a session's sandbox, for the parts that use it: contexts, files, processes,
 * terminals, ports.
 *
 * Each request to the sandbox's init is an operation: it has a number, sends its frames with it,
 * and receives every frame that comes back with it. Frames without an operation are ignored, so an
 * operation may be forgotten at any moment, also in its own `frame`.
 *
 *     starting --> running <--> paused
 *         |           +------------+------> ended   (the object is kept as a tombstone)
 *
 * The sandbox is not trusted: sizes and kinds of frames are checked before an operation gets them
 * (frame_reader.h), and the operation checks whether it expects them. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct session;

/* A request that is under way, in the caller's own storage until session_done() or `ended`. Set the
 * first four members, and zero the rest. */
struct session_operation {
    void *context;

    /* A frame with the operation's id has come; the payload is borrowed for the call. Returns 0, or
     * -1 with *err: init broke the protocol, and the whole session is lost.
     *
     * The frame must be taken at once: one stream carries all frames of a session, and no operation
     * may hold it up. An operation that cannot take more must not order more: a file is ordered in
     * pieces, a program's output by CREDIT. */
    int (*frame)(void *context, const struct agent_frame *frame, const unsigned char *payload,
                 error *err);
    void (*room)(void *context); /* session_has_room() is true again; NULL: not needed */

    void (*paused)(void *context); /* the session was paused; NULL: not needed */
    /* The session runs again after a pause of that length; NULL: not needed. */
    void (*resumed)(void *context, int64_t paused_ms);

    /* The session has ended, *why is the reason: the operation is forgotten already and nothing can
     * be sent. Never called after session_done(). */
    void (*ended)(void *context, const error *why);

    bool hears_denials; /* gets frames of refused calls, which have no number */
    uint32_t id;        /* set by session_begin(), unique in a session */
    struct session_operation *next;
};

enum { SESSION_OPERATIONS_MAX = 256 };

/* Begins an operation, and counts as use of the session. Fails  ERR_CONFLICT  the session does not
 * run, is paused, or has ended; ERR_BUSY  SESSION_OPERATIONS_MAX are under way */
int session_begin(struct session *session, struct session_operation *operation, error *err);

/* Forgets the operation, if it is one. Its later frames are ignored. It does not end programs
 * inside: send a frame for that first. */
void session_done(struct session *session, struct session_operation *operation);

/* Queues one frame with the operation's id; session_flush() sends it. `size`, `id` and `reserved`
 * are set here. */
void session_send(struct session *session, const struct session_operation *operation,
                  enum agent_kind kind, const struct iovec *parts, int part_count);
/* The same with a descriptor, which is taken. */
void session_send_with(struct session *session, const struct session_operation *operation,
                       enum agent_kind kind, int descriptor);
void session_flush(struct session *session);
/* Sends one frame at once. NULL: the session has ended, and nothing is sent. */
static inline void session_order(struct session *session, const struct session_operation *operation,
                                 enum agent_kind kind, const void *payload, size_t size)
{
    struct iovec part = { (void *) (uintptr_t) payload, size };
    if (!session)
        return;
    session_send(session, operation, kind, &part, size > 0);
    session_flush(session);
}

/* False while too many bytes are queued; `room` is called when that changes. */
bool session_has_room(const struct session *session);

/* Restarts the idle time of the session. Doors call it for every request of a client. */
void session_touch(struct session *session);

/* While it is held the session is not idle: for a running cell, an open stream or terminal. */
void session_hold(struct session *session);
void session_let_go(struct session *session);

bool session_is_running(const struct session *session);

/* Fails  ERR_CONFLICT  with the reason why it does not run. */
int session_check_running(const struct session *session, error *err);
const char *session_id(const struct session *session);
/* Of its account's tenant: the same for all sessions of a tenant. */
const char *session_owner(const struct session *session);
