/* session_tombstones.h - which sessions there were, in a file, so that the next daemon can answer
 * a client whose session ended with its daemon.
 *
 * One line of JSON when a session begins, one when it ends. A session without the second has ended
 * with its daemon. After some thousand lines what is still worth knowing goes into a second file,
 * and, once that is on disk, the first is emptied: each is what the other one was. Names of
 * callers, times and causes: nothing of what was inside. */
#pragma once

#include "base/error.h"
#include "engine/session/session_registry.h"

struct tombstone {
    char id[SESSION_ID_SIZE];
    char owner[BLOB_OWNER_SIZE];
    int64_t created_ms, ended_ms; /* ended_ms 0: it did not end before its daemon did */
    char end[16];
    error why;
};

typedef void tombstone_found(void *context, const struct tombstone *tombstone);
/* Opens the list in the folder `state`, and takes it over if no other gloveboxd has it. */
int tombstones_open(const char *state, tombstone_found *found, void *context,
                    struct tombstones *ret_tombstones, error *err);

/* Reads what earlier daemons left and tells `found` of each, the oldest first; what is older than
 * the last TOMBSTONES_MAX is forgotten. Returns 0, also if it is ours already, or
 * TOMBSTONES_ELSEWHERE: another daemon still writes there. */
enum { TOMBSTONES_ELSEWHERE = 1 };
int tombstones_take_over(struct tombstones *tombstones, tombstone_found *found, void *context,
                         error *err);
void tombstones_close(struct tombstones *tombstones); /* the next daemon may have it */

/* A failure is logged: a session does not end for it. */
void tombstones_note_begin(struct tombstones *tombstones, const struct session *session);
void tombstones_note_end(struct tombstones *tombstones, const struct session *session);
