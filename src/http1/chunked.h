/* chunked.h - the body of a request that is sent in chunks. Pure; any thread. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Follows chunks byte for byte. Extensions and trailers are taken and dropped by the writer. */
struct http_chunks {
    int state;
    uint64_t left;   /* of the chunk's data */
    unsigned digits; /* of its size */
    unsigned line;   /* bytes of the line so far */
};

enum http_chunk_verdict { CHUNK_SKIP, CHUNK_DATA, CHUNK_END, CHUNK_BAD };

/* Looks at `size` bytes and says what the first *ret_used of them are: framing, data, the end. */
enum http_chunk_verdict http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t size,
                                         size_t *ret_used);
