/* response_head.h - the head of an upstream's answer, written anew for code: nothing that is meant
 * for one hop, a length or chunks, and redirects within the upstream under the endpoint's own name.
 * Pure; any thread. */
#pragma once

#include "contract/egress.h"

#include <stdbool.h>
#include <stddef.h>

enum { ANSWER_HEAD_MAX = 32768 };

struct answer_head {
    unsigned status;
    bool is_whole, has_length, has_coding;
    bool is_encoded;  /* its body is compressed, or otherwise not what it says */
    bool is_chunked;  /* as it is written on */
    bool has_no_body; /* set before: the request was HEAD */
    size_t size;
    char text[ANSWER_HEAD_MAX / 2]; /* lines that go on, each with its CRLF */
};

enum answer_verdict { ANSWER_MORE, ANSWER_WHOLE, ANSWER_BAD };

/* Takes one line, its end included. A new status line begins anew (100 Continue and the like come
 * before the answer); what comes after the whole head is dropped. */
enum answer_verdict answer_head_take(struct answer_head *answer, const char *line, size_t size);

/* Gives its size, 0 if it does not fit. */
size_t answer_head_write(const struct answer_head *answer, const struct egress_endpoint *endpoint,
                         char ret_text[ANSWER_HEAD_MAX]);
