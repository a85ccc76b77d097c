/* splice.h - bytes from one socket to another by way of a pipe (splice(2)): they are counted, not
 * copied and not looked at. */
#pragma once

#include "http1/chunked.h"
#include "http1/request_head.h"

#include <stdbool.h>
#include <stdint.h>

enum flow_body {
    FLOW_ALL,     /* until the sender ends */
    FLOW_COUNTED, /* `left` bytes, then nothing more */
    FLOW_CHUNKED  /* as the chunks say; framing is written anew */
};

struct flow {
    int from, to; /* borrowed, non-blocking */
    int pipe[2];
    enum flow_body body;
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
int flow_open(struct flow *flow, int from, int to);
void flow_close(struct flow *flow);

/* Tells the kernel of a hop within this machine, which a congestion control that paces (BBR, where
 * it is the default) would halve. See docs/decisions/0050. */
void flow_keeps_to_host(int socket);

/* Puts bytes that have been read already before everything else; at most 64 KiB. */
int flow_put(struct flow *flow, const void *bytes, size_t size);

/* Bytes of the body that have been read already: counted, or taken as chunks. */
int flow_put_body(struct flow *flow, const char *bytes, size_t size);

/* Moves what can be moved without waiting, at most `most` bytes taken from the sender.
 * Gives *ret_taken. Then wants_read and wants_write say what to wait for. */
void flow_pump(struct flow *flow, uint64_t most, uint64_t *ret_taken);
bool flow_wants_read(const struct flow *flow);
bool flow_wants_write(const struct flow *flow);
