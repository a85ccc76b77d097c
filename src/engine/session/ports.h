/* ports.h - connections to servers that listen inside a session. init makes them, on the sandbox's
 * own loopback; here they are bytes both ways, with a window each way, and the answer of an HTTP
 * server that nobody trusts. */
#pragma once

#include "base/bytes.h"
#include "engine/session/session.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORT_WINDOW = 256 * 1024, PORT_HEAD_MAX = 64 * 1024 };

struct port_link {
    struct session *session; /* NULL once it has ended */
    struct session_operation operation;
    void (*woken)(void *context);
    void *context;
    bool stands;    /* the server has accepted */
    bool has_ended; /* it sends no more */
    bool is_ended;  /* both ways, or `failure` */
    bool input_ends, input_has_ended;
    error failure;
    struct bytes in; /* from the server, not taken yet */
    size_t taken;
    uint64_t owed;
    struct bytes out; /* to the server, waits for its window */
    size_t window;
};

/* `woken` and `context` have been set, the rest is zero. Fails as session_begin(). */
int port_link_begin(struct port_link *link, struct session *session, uint16_t port, error *err);
void port_link_close(struct port_link *link);
size_t port_link_take(struct port_link *link, char *bytes, size_t size);
bool port_link_has_room(const struct port_link *link);
void port_link_give(struct port_link *link, const void *bytes, size_t size);
void port_link_end_input(struct port_link *link);

/* The head of an HTTP/1.1 answer, and how its body is told apart. */
struct port_answer {
    unsigned status;
    size_t looked; /* bytes of a head whose end has not come yet */
    bool is_chunked, has_size;
    uint64_t left;        /* of the body, or of this chunk */
    struct bytes headers; /* name, NUL, value, NUL …: those that are passed on */
    char mime[128];
    char upgrade[64];
    enum { CHUNK_SIZE, CHUNK_BYTES, CHUNK_LINE, CHUNK_LAST, CHUNKS_END } chunk;
};

enum { ANSWER_CUT = 0, ANSWER_WHOLE = 1 };

/* Reads a head from its beginning; after ANSWER_CUT again with what has been added to it. Gives
 * *ret_used bytes of it with ANSWER_WHOLE. Fails  ERR_UNREACHED  it is none. */
int port_answer_read(struct port_answer *answer, const char *bytes, size_t size, size_t *ret_used,
                     error *err);

/* Some bytes of a body in chunks. */
struct port_piece {
    char *bytes;
    size_t size;
    size_t used; /* of the bytes; the rest comes again, with more */
    size_t kept; /* bytes of the body itself, at the beginning */
};

/* Takes chunks apart in place. Gives  piece->used and piece->kept. Fails  ERR_UNREACHED. */
int port_answer_body(struct port_answer *answer, struct port_piece *piece, error *err);

/* Whether a header belongs to one connection only (RFC 9110, 7.6.1), or to glovebox itself. */
bool port_header_is_ours(const char *name);
