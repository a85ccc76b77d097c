/* response_head.h - rewrites the head of an upstream's answer for the client: without hop-by-hop
 * fields, with a length or chunks; redirects within the upstream get the endpoint's own name. Pure.
 */
#pragma once

#include "contract/egress.h"

#include <stdbool.h>
#include <stddef.h>

enum { ANSWER_HEAD_MAX = 32768 };

struct answer_head {
    unsigned status;
    bool is_whole, has_length, has_coding;
    bool is_encoded;  /* its body is compressed or has another coding */
    bool is_chunked;  /* it is sent to the client in chunks */
    bool has_no_body; /* set before: the request was HEAD */
    size_t size;
    char text[ANSWER_HEAD_MAX / 2]; /* lines to pass on, each with its CRLF */
};

enum answer_verdict { ANSWER_MORE, ANSWER_WHOLE, ANSWER_BAD };

/* Takes one line with its CRLF. A new status line starts again (100 Continue and the like come
 * before the answer); lines after the end of the head (trailers) are dropped. */
enum answer_verdict answer_head_take(struct answer_head *answer, const char *line, size_t size);

/* Writes the head. Returns its size, 0 if it does not fit. */
size_t answer_head_write(const struct answer_head *answer, const struct egress_endpoint *endpoint,
                         char ret_text[ANSWER_HEAD_MAX]);
