/* lost_runs.h - runs of earlier daemons that the log of receipts still has: a request for a run
 * that the end of a daemon has interrupted is answered `lost`, and not with "no such run". */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct account;
struct lost_runs;
struct receipts;

/* Reads the end of the log. Gives  *ret_past, freed with lost_runs_free(). */
int lost_runs_open(struct receipts *receipts, struct lost_runs **ret_past, error *err);
void lost_runs_free(struct lost_runs *lost_runs); /* NULL is accepted */

/* Adds the result of a lost run to `out`. `past` may be NULL: no such runs.
 * Fails  ERR_NOT_FOUND  there is no such run for this account, or it ended: the message names its
 *                       receipt, the result is not kept */
int lost_runs_result(const struct lost_runs *lost_runs, const struct account *account,
                     const char *id, struct bytes *out, error *err);

/* True if this run, which was to begin when the log had `log_size` records, never began: it may
 * begin now. */
bool lost_runs_never_began(const struct lost_runs *lost_runs, const char *id, uint64_t log_size);
