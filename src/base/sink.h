/* sink.h - a writer that can count before it sends. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* Counts bytes, or sends them to a socket. The same function writes a request's body twice, first
 * to count its length, then to send it, so that the body is never held in memory. */
struct sink {
    int fd;         /* -1: only count */
    uint64_t total; /* bytes written so far */
    size_t used;
    int failed; /* errno of the first failure; later bytes are dropped */
    char buffer[8192];
};

void sink_init(struct sink *sink, int fd);
void sink_bytes(struct sink *sink, const void *data, size_t size);
void sink_text(struct sink *sink, const char *text);
void sink_base64(struct sink *sink, const void *data, size_t size); /* with its quotes */
int sink_flush(struct sink *sink, error *err);
