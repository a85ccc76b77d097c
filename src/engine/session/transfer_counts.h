/* transfer_counts.h - what clients do with a session beside its cells and programs (files, ports,
 * signed URLs), counted, and told in the log: the first of it within a second, after that what has
 * come together in a minute, all of it in session.ended. So its volume has a bound. */
#pragma once

#include "base/clock.h"
#include "ledger/statement.h"

#include <stdbool.h>
#include <stdint.h>

enum session_deed {
#define TRANSFER(name, word) TRANSFER_##name,
#include "engine/session/transfer_counts.def"
    TRANSFERS
};

struct session_deeds {
    uint64_t done[TRANSFERS];
    uint64_t told[TRANSFERS];
    deadline next; /* not told before */
};

struct session;

void session_count(struct session *session, enum session_deed transfer, uint64_t count);

/* Tells what is untold: now, at its end, or when it is time for it. */
void session_tell_deeds(struct session *session, bool now);

/* Whether what its programs use is withheld with what they print: they choose both. */
bool session_usage_is_withheld(const struct session *session);

/* Adds the totals, and what its cells and programs used unless that is withheld, to the fields of
 * an event: at most SESSION_SUMMARY of them. Returns how many. */
enum { SESSION_SUMMARY = TRANSFERS + 10 };
unsigned session_summary(const struct session *session, struct event_field fields[SESSION_SUMMARY]);
