/* activity.h - activities on a whole session: its contexts run, a branch reads it, a checkpoint
 * copies it, a rollback replaces its sandbox. session.c and session_registry.c call all activities
 * through this table and name none. */
#pragma once

#include "base/error.h"

#include <stdbool.h>

struct session;
struct session_source;

/* What other activities must not do while one is under way: bits. */
enum {
    SESSION_IS_COPIED = 1,   /* by a checkpoint or a branch */
    SESSION_IS_BRANCHED = 2, /* by a branch */
    SESSION_MUST_LIVE = 4,   /* by a branch that was answered: it must not end */
    SESSION_ROLLS_BACK = 8,
};

struct session_activity {
    unsigned (*holds)(const struct session *session); /* NULL: nothing */

    /* While the session starts from another one; NULL: not concerned. */
    int (*begin)(struct session *session, const struct session_source *source, error *err);
    bool (*take_sandbox)(struct session *session); /* true: session_filled() follows */

    /* The sandbox ends, then its route and its operations. NULL: the activity waits for `end`. */
    void (*leave_sandbox)(struct session *session, const error *why);

    void (*look)(struct session *session);          /* each second: checks deadlines; may end it */
    bool (*use_free_slot)(struct session *session); /* false: there is none */
    /* The session ends, or never began; NULL: nothing to free. */
    void (*end)(struct session *session, const error *why);
};

/* Ended by NULL; activities.c. An argument of sessions_open(). */
extern const struct session_activity *const session_activities[];

/* NOLINTBEGIN(bugprone-macro-parentheses): a declared name cannot be in parentheses */
#define for_each_activity(name, sessions) \
    for (const struct session_activity *const *name = (sessions)->activities; *name; (name)++)
/* NOLINTEND(bugprone-macro-parentheses) */

/* The bits of all activities. */
unsigned session_holds(const struct session *session);
