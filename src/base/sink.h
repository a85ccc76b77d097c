/* sink.h - a writer that can count before it sends. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* A place for bytes: first a counter, then a socket. The body of a request is written twice by the
 * same function, so that its length is known before it is sent and it is never held in memory. */
struct sink {
    int fd;         /* -1: only count */
    uint64_t total; /* bytes written so far */
    size_t used;
    int failed; /* errno of the first failure; what follows is dropped */
    char buffer[8192];
};

void sink_init(struct sink *sink, int fd);
void sink_bytes(struct sink *sink, const void *data, size_t size);
void sink_text(struct sink *sink, const char *text);
void sink_base64(struct sink *sink, const void *data, size_t size); /* with its quotes */
int sink_flush(struct sink *sink, error *err);
