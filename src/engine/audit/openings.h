/* openings.h - the openings of a receipt's commitments, for accounts that may see the content. */
#pragma once

#include "engine/audit/audit_log.h"
#include "engine/schedule/accounts.h"

/* Adds a JSON object: the keys of its items and the sealed facts for the daemon's owner and keys
 * with scope audit; only the keys for the API key that got the answer. Fails  ERR_NOT_FOUND;
 * ERR_FORBIDDEN  it may not see the content; ERR_BAD_REQUEST  the receipt has none */
int opening_write(struct receipts *receipts, const struct account *account, const char *id,
                  struct bytes *out, error *err);
