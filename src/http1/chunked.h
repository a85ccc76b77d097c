/* chunked.h - the body of a message that is sent in chunks. Pure; any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Follows chunks byte for byte. Extensions and trailers are taken and dropped by the writer. */
struct http_chunks {
    int state;
    uint64_t left;   /* of the chunk's data */
    unsigned digits; /* of its size */
    unsigned line;   /* bytes of the line so far */
};

/* True once the chunk of size 0 has come: only trailers follow. */
bool http_chunks_are_read(const struct http_chunks *chunks);

enum http_chunk_verdict { CHUNK_SKIP, CHUNK_DATA, CHUNK_END, CHUNK_BAD };

/* Looks at `size` bytes and says what the first *ret_used of them are: framing, data, the end. */
enum http_chunk_verdict http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t size,
                                         size_t *ret_used);
