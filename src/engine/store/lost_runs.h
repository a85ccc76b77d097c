/* lost_runs.h - runs of daemons before this one, as far as the log of receipts still tells of them:
 * who asks for a run that a daemon's death has interrupted hears `lost`, not that there is no such
 * run.
 *
 *   See  docs/decisions/0044 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct account;
struct past;
struct receipts;

/* Looks through the end of the log. Gives  *ret_past, freed with past_free(). */
int past_open(struct receipts *receipts, struct past **ret_past, error *err);
void past_free(struct past *past); /* NULL is fine */

/* Adds the result of a run that was lost to `out`. For `past` NULL there is nothing to be known.
 * Fails  ERR_NOT_FOUND  there is no such run for this account, or it came to its end: then its
 *                       receipt is named, its result is gone */
int past_result(const struct past *past, const struct account *account, const char *id,
                struct bytes *out, error *err);

/* Whether this run, which was to begin when the log had `log_size` records, never did: it may begin
 * now. */
bool past_never_began(const struct past *past, const char *id, uint64_t log_size);
