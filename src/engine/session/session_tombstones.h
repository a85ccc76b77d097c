/* session_tombstones.h - a file with the list of sessions, so that the next daemon can answer a
 * client whose session ended with its daemon.
 *
 * Each session has a line of JSON when it begins and one when it ends. A session without the second
 * line ended with its daemon. After some thousand lines, what is still needed is written to a
 * second file; when that is on disk, the first is emptied, and they change roles. The lines have
 * names of callers, times and causes, and nothing of what ran inside. */
#pragma once

#include "base/error.h"
#include "engine/session/session_registry.h"

struct tombstone {
    char id[SESSION_ID_SIZE];
    char owner[BLOB_OWNER_SIZE];
    int64_t created_ms, ended_ms; /* ended_ms 0: its daemon died before it ended */
    char end[16];
    error why;
};

typedef void tombstone_found(void *context, const struct tombstone *tombstone);
/* Opens the list in the folder `state`, and takes it over if no other gloveboxd has it. */
int tombstones_open(const char *state, tombstone_found *found, void *context,
                    struct tombstones *ret_tombstones, error *err);

/* Reads what earlier daemons left and calls `found` for each session, the oldest first, for at most
 * TOMBSTONES_MAX. Returns 0, also if the list is ours already, or TOMBSTONES_ELSEWHERE: another
 * daemon still writes there. */
enum { TOMBSTONES_ELSEWHERE = 1 };
int tombstones_take_over(struct tombstones *tombstones, tombstone_found *found, void *context,
                         error *err);
void tombstones_close(struct tombstones *tombstones); /* lets the next daemon take it */

/* Writes a line. A failure is logged; the session goes on. */
void tombstones_note_begin(struct tombstones *tombstones, const struct session *session);
void tombstones_note_end(struct tombstones *tombstones, const struct session *session);
