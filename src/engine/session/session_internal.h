/* session_internal.h - what the files of the table of sessions share: session_registry.c has it,
 * session_create.c adds to it, session_deadlines.c ends what is over. */
#pragma once

#include "engine/session/session_registry.h"

enum { SESSION_START_MS = 20000 };

void sessions_set_timer(struct sessions *sessions); /* for the next deadline */
void session_forget(struct sessions *sessions, struct session *session);
void sessions_forget_old(struct sessions *sessions);
void sessions_list(struct sessions *sessions, struct session *session); /* as the newest */

/* An event of the log of this kind about a session. */
int session_write_log(const struct session *session, const char *kind, error *err);
