/* audit_events.h - the kinds of events and their facts: audit_events.def. */
#pragma once

#include "ledger/statement.h"

/* Has the table this kind, and does it have these facts? Fails  ERR_INTERNAL. */
int audit_event_check(const char *kind, const struct event_field *fields, error *err);
