/* lost_runs.h - runs of daemons before this one, as far as the log of receipts still tells of them:
 * a request for a run that a daemon's death has interrupted is answered `lost`, not that there is
 * no such run.
 *
 *   See  docs/decisions/0044 */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct account;
struct lost_runs;
struct receipts;

/* Looks through the end of the log. Gives  *ret_past, freed with lost_runs_free(). */
int lost_runs_open(struct receipts *receipts, struct lost_runs **ret_past, error *err);
void lost_runs_free(struct lost_runs *lost_runs); /* NULL is fine */

/* Adds the result of a run that was lost to `out`. For `past` NULL there is nothing to be known.
 * Fails  ERR_NOT_FOUND  there is no such run for this account, or it came to its end: then its
 *                       receipt is named, its result is gone */
int lost_runs_result(const struct lost_runs *lost_runs, const struct account *account,
                     const char *id, struct bytes *out, error *err);

/* Whether this run, which was to begin when the log had `log_size` records, never did: it may begin
 * now. */
bool lost_runs_never_began(const struct lost_runs *lost_runs, const char *id, uint64_t log_size);
