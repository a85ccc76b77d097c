/* event.h - writes a single event to the log, for programs like `glovebox key`. gloveboxd keeps its
 * log open: engine/audit/audit_log.h.
 *
 *   Threads  none.   See  docs/reference/event.schema.json: every kind, with its facts */
#pragma once

#include "ledger/statement.h"

/* Adds an event to the log STATE/log, which is made if it is missing. `state` is a descriptor of
 * the state folder. Fails  as ledger_open() and ledger_commit(). */
int event_append(int state, const char *kind, const struct event_field *fields, error *err);

/* Makes a new signing key for that log. Fails  as event_append(). */
int event_rotate_key(int state, error *err);
