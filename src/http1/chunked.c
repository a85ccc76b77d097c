/* chunked.c - see chunked.h; RFC 9112, section 7.1. */
#include "http1/chunked.h"

#include "base/hex.h"

enum chunk_state {
    AT_SIZE,
    AT_EXTENSION,
    AT_SIZE_END,
    AT_DATA,
    AT_DATA_CR,
    AT_DATA_LF,
    AT_TRAILER,
    AT_TRAILER_END,
    AT_END
};

enum { CHUNK_LINE_MAX = 4096 };

static enum chunk_state after_size(struct http_chunks *chunks)
{
    return chunks->left > 0 ? AT_DATA : AT_TRAILER;
}

bool http_chunks_are_read(const struct http_chunks *chunks)
{
    return chunks->state >= AT_TRAILER || (chunks->state == AT_SIZE_END && chunks->left == 0);
}

/* One byte of framing. Returns the next state, -1 if it is wrong. */
static int next_state(struct http_chunks *chunks, char c)
{
    if (++chunks->line > CHUNK_LINE_MAX)
        return -1;
    switch ((enum chunk_state) chunks->state) {
    case AT_SIZE:
        if (hex_digit(c) >= 0 && chunks->digits < 15) {
            chunks->left = chunks->left << 4 | (uint64_t) hex_digit(c);
            chunks->digits++;
            return AT_SIZE;
        }
        if (chunks->digits == 0)
            return -1;
        return c == '\r' ? AT_SIZE_END : c == ';' ? AT_EXTENSION : -1;
    case AT_EXTENSION:
        return c == '\r' ? AT_SIZE_END : (unsigned char) c >= ' ' || c == '\t' ? AT_EXTENSION : -1;
    case AT_SIZE_END:
        chunks->line = 0;
        return c == '\n' ? (int) after_size(chunks) : -1;
    case AT_DATA_CR:
        return c == '\r' ? AT_DATA_LF : -1;
    case AT_DATA_LF:
        chunks->digits = chunks->line = 0;
        return c == '\n' ? AT_SIZE : -1;
    case AT_TRAILER: /* a field, or the empty line */
        if (c == '\r')
            return AT_TRAILER_END;
        chunks->digits = 0; /* this line is not empty */
        return (unsigned char) c >= ' ' || c == '\t' ? AT_TRAILER : -1;
    case AT_TRAILER_END:
        if (c != '\n')
            return -1;
        if (chunks->digits > 0)
            return AT_END;
        chunks->digits = 1;
        return AT_TRAILER;
    case AT_DATA:
    case AT_END:
        break;
    }
    return -1;
}

enum http_chunk_verdict http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t size,
                                         size_t *ret_used)
{
    *ret_used = 0;
    if (chunks->state == AT_END)
        return CHUNK_END;
    if (chunks->state == AT_DATA) {
        size_t part = chunks->left < size ? (size_t) chunks->left : size;
        chunks->left -= part;
        *ret_used = part;
        if (chunks->left == 0)
            chunks->state = AT_DATA_CR;
        return CHUNK_DATA;
    }
    while (*ret_used < size && chunks->state != AT_DATA) {
        int next = next_state(chunks, bytes[(*ret_used)++]);
        if (next < 0)
            return CHUNK_BAD;
        chunks->state = next;
        if (next == AT_END)
            return CHUNK_END;
    }
    return CHUNK_SKIP;
}
