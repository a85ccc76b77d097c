/* session_tombstones.h - which sessions there were, in a file, so that a client whose session went
 * with its daemon is told so by the next one.
 *
 * One line of JSON when a session begins, one when it ends. A session without the second has ended
 * with its daemon. After some thousand lines what is still worth knowing goes into a second file,
 * and, once that is on disk, the first is emptied: each is what the other one was. Names of
 * callers, times and causes: nothing of what was inside. */
#pragma once

#include "base/error.h"
#include "engine/session/session_registry.h"

/* Opens the list in the folder `state`, and takes it over if nobody else has it. */
enum { GRAVES_MOST = 1000 };

struct grave {
    char id[SESSION_ID_SIZE];
    char owner[BLOB_OWNER_SIZE];
    int64_t created_ms, ended_ms; /* ended_ms 0: it did not end before its daemon did */
    char end[16];
    error why;
};

typedef void grave_found(void *context, const struct grave *grave);
int graveyard_open(const char *state, grave_found *found, void *context,
                   struct graveyard *ret_graveyard, error *err);

/* Reads what earlier daemons left and tells `found` of each, the oldest first; what is older than
 * the last GRAVES_MOST is forgotten. Returns 0, also if it is ours already, or
 * GRAVEYARD_ELSEWHERE: another daemon still writes there. */
enum { GRAVEYARD_ELSEWHERE = 1 };
int graveyard_take_over(struct graveyard *graveyard, grave_found *found, void *context, error *err);
void graveyard_close(struct graveyard *graveyard); /* the next daemon may have it */

/* A failure is logged: a session does not end for it. */
void graveyard_note_begin(struct graveyard *graveyard, const struct session *session);
void graveyard_note_end(struct graveyard *graveyard, const struct session *session);
