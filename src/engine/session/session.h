/* session.h - a sandbox that is kept, as those see it that work in it: contexts, files, processes,
 * terminals, ports.
 *
 * Each request to the sandbox's init is an operation: it gets a number, sends its
 * frames under it, and receives every frame that comes back with that number. What has no operation
 * (any more) is ignored, so an operation may be forgotten at any moment, also in its own `frame`.
 *
 *     starting --> running <--> paused
 *         |           +------------+------> ended   (which stays as its own tombstone)
 *
 * Nothing of the sandbox is believed: sizes and kinds are checked before an operation receives them
 * (frame_reader.h), what they mean in the moment is checked by the operation. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

struct session;

/* Something that is under way inside; lies in the caller's own storage until session_done() or
 * `ended`. Fill in the first four, and zero the rest. */
struct session_operation {
    void *context;

    /* A frame with the operation's id has come; the payload is borrowed for the call.
     * Returns 0, or -1 with *err: the sandbox's init misbehaves, and the whole session is lost.
     *
     * What comes has to be taken at once: one stream carries everything of a session, and no
     * operation may hold it up. An operation that cannot take more does not order more: a file is
     * ordered in pieces, a program's output by CREDIT. */
    int (*frame)(void *context, const struct agent_frame *frame, const unsigned char *payload,
                 error *err);
    void (*room)(void *context); /* session_has_room() is true again; NULL: never mind */

    void (*paused)(void *context); /* the session stands still now; NULL: never mind */
    /* The session runs on after it was paused for so long; NULL: never mind. */
    void (*resumed)(void *context, int64_t paused_ms);

    /* The session has ended, *why says how: the operation is forgotten already, nothing more comes,
     * and nothing can be sent. Never called after session_done(). */
    void (*ended)(void *context, const error *why);

    bool hears_denials; /* frames of calls that were refused, which carry no number */
    uint32_t id;        /* given by session_begin(), never twice in a session */
    struct session_operation *next;
};

enum { SESSION_OPERATIONS_MAX = 256 };

/* Begins an operation, and counts as use of the session.
 * Fails  ERR_CONFLICT  the session does not run, is paused, or has ended: why
 *        ERR_BUSY      SESSION_OPERATIONS_MAX are under way */
int session_begin(struct session *session, struct session_operation *operation, error *err);

/* Forgets the operation; does nothing if it is none (any more). Frames that still come for it are
 * ignored. It does not end what runs inside: send an order for that first. */
void session_done(struct session *session, struct session_operation *operation);

/* Puts one frame under the operation's id behind those that wait; it goes out with the next
 * session_flush(). `size`, `id` and `reserved` of the frame are set here. */
void session_send(struct session *session, const struct session_operation *operation,
                  enum agent_kind kind, const struct iovec *parts, int part_count);
/* The same with a descriptor, which is taken. */
void session_send_with(struct session *session, const struct session_operation *operation,
                       enum agent_kind kind, int descriptor);
void session_flush(struct session *session);

/* False while too much output waits to be sent; `room` is called when that changes. */
bool session_has_room(const struct session *session);

/* The session is in use: its idle time begins anew. A door calls it for whatever a client does. */
void session_touch(struct session *session);

/* While it is held the session is not idle: a cell that runs, an open stream or terminal. */
void session_hold(struct session *session);
void session_let_go(struct session *session);

bool session_is_running(const struct session *session);

/* Fails ERR_CONFLICT, saying why it does not run. */
int session_check_running(const struct session *session, error *err);
const char *session_id(const struct session *session);
/* Of its account's tenant: what all sessions of a tenant have in common. */
const char *session_owner(const struct session *session);
