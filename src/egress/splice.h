/* splice.h - moves bytes from one socket to another through a pipe (splice(2)): they are counted,
 * but neither copied nor inspected. */
#pragma once

#include "http1/chunked.h"

#include <stdbool.h>
#include <stdint.h>

enum splice_body {
    SPLICE_ALL,     /* until the sender ends */
    SPLICE_COUNTED, /* `left` bytes, then nothing more */
    SPLICE_CHUNKED  /* until the last chunk; chunks are written again */
};

struct splice {
    int from, to; /* borrowed, non-blocking */
    int pipe[2];
    enum splice_body body;
    uint64_t left;
    struct http_chunks chunks;
    size_t held;   /* bytes in the pipe */
    bool is_ended; /* nothing more is taken from the sender */
    bool is_done;  /* and everything has been passed on */
    bool fails;    /* the receiver has closed, or the body is malformed or incomplete */
    bool is_wrong; /* its chunks are malformed */
    bool is_cut;   /* the sender ended before the end of the body */
    bool is_wide;  /* it has passed much, and has a larger pipe */
    uint64_t passed;
};

/* Makes the pipe. Returns -1 with errno on failure. */
int splice_open(struct splice *flow, int from, int to);
void splice_close(struct splice *flow);

/* Sets the congestion control of a connection within this machine, whose speed one that paces (BBR,
 * where it is the default) would halve. See docs/decisions/0050. */
void splice_keeps_to_host(int socket);

/* Puts bytes that were read earlier into the pipe, before all others; at most 64 KiB. */
int splice_put(struct splice *flow, const void *bytes, size_t size);

/* The same for the first bytes of the body: counted, or parsed as chunks. */
int splice_put_body(struct splice *flow, const char *bytes, size_t size);

/* Moves what can be moved without waiting; takes at most `max` bytes from the sender.
 * Gives *ret_taken. Then wants_read and wants_write say what to wait for. */
void splice_pump(struct splice *flow, uint64_t max, uint64_t *ret_taken);
bool splice_wants_read(const struct splice *flow);
bool splice_wants_write(const struct splice *flow);
