/* sink.h - what crosses JSON: UTF-8 checks, base64, and a writer that can count before it
 * sends. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Offset of the first byte that is not UTF-8 or is NUL; `size` if there is none. */
size_t text_first_bad_byte(const void *text, size_t size);

/* Decodes standard base64 in place of a copy: ret_data has room for 3/4 of `length`.
 * Returns the bytes written, or -1 if it is not base64. */
int64_t base64_decode(const char *text, size_t length, void *ret_data);

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
void sink_json_string(struct sink *sink, const char *text, size_t size); /* with its quotes */
void sink_base64(struct sink *sink, const void *data, size_t size);      /* with its quotes */
int sink_flush(struct sink *sink, error *err);
