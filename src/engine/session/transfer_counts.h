/* transfer_counts.h - counts what clients do with a session besides cells and programs (files,
 * ports, signed URLs), and writes it to the audit log: the first within a second, later ones
 * together once a minute, the totals in session.ended. So the volume in the log is bounded. */
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
    deadline next; /* not written before */
};

struct session;

void session_count(struct session *session, enum session_deed transfer, uint64_t count);

/* Writes what was not written yet: at once, at the end, or when it is due. */
void session_tell_deeds(struct session *session, bool now);

/* True if the usage is withheld together with the output: programs choose both. */
bool session_usage_is_withheld(const struct session *session);

/* Adds the totals, and the usage of cells and programs unless it is withheld, to the fields of an
 * event: at most SESSION_SUMMARY of them. Returns how many. */
enum { SESSION_SUMMARY = TRANSFERS + 10 };
unsigned session_summary(const struct session *session, struct event_field fields[SESSION_SUMMARY]);
