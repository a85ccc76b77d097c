/* audit_event.h - writes events to the daemon's log, for verbs that change permissions. */
#pragma once

#include "base/error.h"
#include "ledger/event.h"

/* Changes to the daemon's user and enters its folder: that user can put anything there, so it must
 * be used without root's rights. Cannot be undone. */
int become_daemon_user(const char *state, error *err);

/* Adds an event, in a process of its own, so that the caller keeps its user id. */
int tell_audit(const char *state, const char *kind, const struct event_field *fields, error *err);

/* Makes a new signing key for the log of that state; the old one names it. */
int tell_rotated_key(const char *state, error *err);
