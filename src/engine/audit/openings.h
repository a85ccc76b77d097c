/* openings.h - what opens the commitments of a receipt, for those who may see their content. */
#pragma once

#include "engine/audit/audit_log.h"
#include "engine/schedule/accounts.h"

/* Adds a JSON object: the keys of its items, and what was sealed, for the daemon's owner and keys
 * with scope audit; the keys alone for the key that was answered with the content.
 * Fails  ERR_NOT_FOUND; ERR_FORBIDDEN  it may not see the content; ERR_BAD_REQUEST  it has none */
int opening_write(struct receipts *receipts, const struct account *account, const char *id,
                  struct bytes *out, error *err);
