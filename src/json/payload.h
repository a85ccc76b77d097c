/* payload.h - bytes of a request, given as text or in base64, decoded piece by piece. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct payload {
    const char *text; /* borrowed from the request */
    size_t text_size;
    bool is_base64;
    uint64_t size; /* of the decoded bytes */
};

void payload_from_text(struct payload *content, const char *text, size_t size);

/* Checks the whole text. Fails  ERR_BAD_REQUEST  it is not standard base64 with padding. */
int payload_from_base64(struct payload *content, const char *text, size_t size, error *err);

/* Copies at most `size` bytes from `offset`. For base64 both must be multiples of 3. Returns how
 * many; 0 at the end. */
size_t payload_read(const struct payload *content, uint64_t offset, unsigned char *bytes,
                    size_t size);
