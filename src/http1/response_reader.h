/* response_reader.h - the answer of an HTTP/1.1 server that is not trusted: reads its head when all
 * of it has come. (chunked.h reads the chunks of its body.) Pure functions. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "http1/chunked.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PORT_HEAD_MAX = 64 * 1024 };

/* The head of an HTTP/1.1 answer, and how its body is delimited. */
struct port_answer {
    unsigned status;
    size_t looked; /* bytes that were searched for the end of the head */
    bool is_chunked, has_size;
    uint64_t left; /* of a body that has a size */
    struct http_chunks chunks;
    struct bytes headers; /* name, NUL, value, NUL …, of those that are passed on */
    char mime[128];
    char upgrade[64];
};

enum { ANSWER_CUT = 0, ANSWER_WHOLE = 1 };

/* Reads a head from its first byte. After ANSWER_CUT call it again with more bytes. Gives
 * *ret_used, the size of the head, with ANSWER_WHOLE. Fails  ERR_UNREACHED  it is malformed. */
int port_answer_read(struct port_answer *answer, const char *bytes, size_t size, size_t *ret_used,
                     error *err);

/* True if a header belongs to one connection only (RFC 9110, 7.6.1), or to glovebox itself. */
bool port_header_is_ours(const char *name);
