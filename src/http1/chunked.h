/* chunked.h - the body of a message that is sent in chunks. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Follows the chunks byte by byte. Extensions and trailers are read and ignored. */
struct http_chunks {
    int state;
    uint64_t left;   /* of the chunk's data */
    unsigned digits; /* of its size */
    unsigned line;   /* bytes of the line so far */
};

/* True after the chunk of size 0: only trailers follow. */
bool http_chunks_are_read(const struct http_chunks *chunks);

enum http_chunk_verdict { CHUNK_SKIP, CHUNK_DATA, CHUNK_END, CHUNK_BAD };

/* Looks at `size` bytes and says what the first *ret_used of them are: framing, data or the end. */
enum http_chunk_verdict http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t size,
                                         size_t *ret_used);
