/* event.h - one event into the log, by a program that writes no others: `glovebox key`. gloveboxd
 * has its log open: engine/audit/audit_log.h.
 *
 *   Threads  none.   See  docs/reference/event.schema.json: every kind, with its facts */
#pragma once

#include "ledger/statement.h"

/* Adds it to the log that lies in STATE/log, which is made if it is missing. `state` is a folder's
 * descriptor. Fails  as ledger_open() and ledger_commit(). */
/* Makes a new signing key for that log. Fails  as event_append(). */
int event_rotate_key(int state, error *err);

int event_append(int state, const char *kind, const struct event_field *fields, error *err);
