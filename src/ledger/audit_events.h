/* audit_events.h - the kinds of events and their facts: audit_events.def. */
#pragma once

#include "ledger/statement.h"

/* Checks that the table has this kind of event, with these facts. Fails  ERR_INTERNAL. */
int audit_event_check(const char *kind, const struct event_field *fields, error *err);
