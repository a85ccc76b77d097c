/* id.c - see id.h. */
#include "ledger/id.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INDEX_DIGITS = 12, CHANCE_BYTES = 10, CHANCES = 64 };

/* Random bytes for many ids are read from the kernel at once. */
void receipt_make_id(uint64_t index, char ret_id[RECEIPT_ID_SIZE])
{
    static unsigned char chances[CHANCES][CHANCE_BYTES];
    static unsigned left;
    char text[2 * CHANCE_BYTES + 1];
    if (left == 0) {
        randombytes_buf(chances, sizeof chances);
        left = CHANCES;
    }
    (void) sodium_bin2hex(text, sizeof text, chances[--left], CHANCE_BYTES);
    (void) snprintf(ret_id, RECEIPT_ID_SIZE, "rcp_%012" PRIx64 "%s",
                    index & ((UINT64_C(1) << 4 * INDEX_DIGITS) - 1), text);
}

int receipt_read_id(const char *id, uint64_t *ret_index, error *err)
{
    char digits[INDEX_DIGITS + 1] = "";
    if (strlen(id) != RECEIPT_ID_SIZE - 1 || strncmp(id, "rcp_", 4) != 0 ||
        strspn(id + 4, "0123456789abcdef") != RECEIPT_ID_SIZE - 5)
        return fail(err, ERR_BAD_REQUEST, "'%.40s' is no receipt's id (rcp_ and 32 hex digits)",
                    id);
    memcpy(digits, id + 4, INDEX_DIGITS);
    *ret_index = strtoull(digits, NULL, 16);
    return 0;
}
