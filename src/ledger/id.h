/* id.h - the id of a record of the log. */
#pragma once

#include "base/error.h"

#include <stdint.h>

enum { RECEIPT_ID_SIZE = 37 /* "rcp_", 32 hex digits and the end */ };

/* The id of record `index`: the index, so that the record is found at once, and random bits, so
 * that the id cannot be guessed. */
void receipt_make_id(uint64_t index, char ret_id[RECEIPT_ID_SIZE]);
/* Reads the index from an id. Fails  ERR_BAD_REQUEST. */
int receipt_read_id(const char *id, uint64_t *ret_index, error *err);
