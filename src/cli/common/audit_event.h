/* audit_event.h - events in the log of the daemon's folder, by verbs that change who or what may.
 */
#pragma once

#include "base/error.h"
#include "ledger/event.h"

/* Makes this process the daemon's user and enters its folder: that user can
 * put anything there, so it is opened with that user's rights, not root's. Cannot be undone. */
int become_daemon_user(const char *state, error *err);

/* Adds one event, in a process of its own, so that the caller stays who it is. */
int tell_audit(const char *state, const char *kind, const struct event_field *fields, error *err);

/* Makes a new signing key for the log of that state; the old one names it. */
int tell_rotated_key(const char *state, error *err);
