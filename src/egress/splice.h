/* splice.h - bytes from one socket to another by way of a pipe (splice(2)): they are counted, not
 * copied and not looked at. */
#pragma once

#include "http1/chunked.h"

#include <stdbool.h>
#include <stdint.h>

enum splice_body {
    SPLICE_ALL,     /* until the sender ends */
    SPLICE_COUNTED, /* `left` bytes, then nothing more */
    SPLICE_CHUNKED  /* as the chunks say; framing is written anew */
};

struct splice {
    int from, to; /* borrowed, non-blocking */
    int pipe[2];
    enum splice_body body;
    uint64_t left;
    struct http_chunks chunks;
    size_t held;   /* bytes in the pipe */
    bool is_ended; /* nothing more is taken */
    bool is_done;  /* and everything has been passed on */
    bool fails;    /* the receiver is gone, or the body is wrong or cut */
    bool is_wrong; /* its chunks are no chunks */
    bool is_cut;   /* its sender ended before it was whole */
    bool is_wide;  /* it passes much, and its pipe holds more */
    uint64_t passed;
};

/* Makes the pipe. -1 with errno if there is none. */
int splice_open(struct splice *flow, int from, int to);
void splice_close(struct splice *flow);

/* Tells the kernel of a hop within this machine, which a congestion control that paces (BBR, where
 * it is the default) would halve. See docs/decisions/0050. */
void splice_keeps_to_host(int socket);

/* Puts bytes that have been read already before everything else; at most 64 KiB. */
int splice_put(struct splice *flow, const void *bytes, size_t size);

/* Bytes of the body that have been read already: counted, or taken as chunks. */
int splice_put_body(struct splice *flow, const char *bytes, size_t size);

/* Moves what can be moved without waiting, at most `most` bytes taken from the sender.
 * Gives *ret_taken. Then wants_read and wants_write say what to wait for. */
void splice_pump(struct splice *flow, uint64_t max, uint64_t *ret_taken);
bool splice_wants_read(const struct splice *flow);
bool splice_wants_write(const struct splice *flow);
