/* activity.h - what is done with a whole session: contexts run in it, a branch reads it, a
 * checkpoint writes it down, a rollback replaces its sandbox. session.c and session_registry.c call
 * every activity through this table and name none of them. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct session;
struct session_source;

/* What an activity that is under way keeps others from: bits. */
enum {
    SESSION_IS_COPIED = 1,   /* a checkpoint or a branch of it is being made */
    SESSION_IS_BRANCHED = 2, /* by a branch */
    SESSION_MUST_LIVE = 4,   /* by a branch that is answered for: nothing may end it */
    SESSION_ROLLS_BACK = 8,
};

struct session_activity {
    unsigned (*holds)(const struct session *session); /* NULL: nothing */

    /* While the session starts from another one; NULL: it has nothing to do with that. */
    int (*begin)(struct session *session, const struct session_source *source, error *err);
    bool (*take_sandbox)(struct session *session); /* true: session_filled() follows */

    /* Its sandbox goes, and then its way out and its operations. NULL: it waits for `end`. */
    void (*leave_sandbox)(struct session *session, const error *why);

    void (*look)(struct session *session);          /* now and then: deadlines; may end it */
    bool (*use_free_slot)(struct session *session); /* false: there is none */
    /* The session ends, or never began; NULL: nothing is left. */
    void (*end)(struct session *session, const error *why);
};

/* Ended by NULL; activities.c. Handed to sessions_open(). */
extern const struct session_activity *const session_activities[];

/* NOLINTBEGIN(bugprone-macro-parentheses): a name that is declared cannot stand in them */
#define for_each_activity(name, sessions) \
    for (const struct session_activity *const *name = (sessions)->activities; *name; (name)++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* The bits of all of them. */
unsigned session_holds(const struct session *session);
