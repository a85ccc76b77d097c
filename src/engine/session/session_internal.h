/* session_internal.h - struct session, and what the files of the list of sessions share:
 * session_registry.c owns it, session_create.c adds to it, session_deadlines.c ends sessions. */
#pragma once

#include "engine/network/egress_client.h"
#include "engine/session/session_registry.h"

struct session {
    /* Read by is_unused() for each session once a second: kept within two cache lines. */
    struct session *older, *newer;
    struct sessions *sessions;
    struct account *account; /* of its caller: accounts.h */
    enum session_state state;
    unsigned holds;
    bool was_used;       /* an operation has begun: before, no code of its client runs */
    bool delete_pending; /* it ends when no branch reads it any more */
    deadline idle_ends, age_ends;
    int64_t looked_at_ms;     /* idle_ends at the last look: it changes with each use */
    struct context *injected; /* whose interpreter is being forked: one at a time */
    struct session_checkpoint *checkpoints; /* the newest first: checkpoints.h */
    struct rollback *rollback;              /* while it is being rolled back */

    char id[SESSION_ID_SIZE];
    struct session_request request; /* until it has ended */
    struct run_spec plan;
    struct json_object *metadata; /* an object of texts */

    char owner[BLOB_OWNER_SIZE]; /* of the account; "" if an earlier daemon began it */
    bool waits_for_room;         /* while starting: all slots are in use */
    deadline start_ends;
    struct pool_ticket *pending_lease;
    struct sandbox *sandbox;
    enum run_start start;
    uint64_t walls, degraded;
    struct counters counters;    /* of this sandbox, when last read */
    struct session_usage before; /* of its earlier sandboxes, before rollbacks */

    struct session_operation *operations;
    unsigned operation_count;
    uint32_t last_id;
    uint64_t charged_us; /* processor time that its account was charged for */
    deadline charge_due; /* when to charge the account next, without a request */
    int64_t charge_ms;   /* the interval after that */

    int64_t created_ms, ended_ms; /* since 1970 */
    int64_t began_at;             /* on the clock of deadlines; pauses do not count */
    uint64_t idle_ms;             /* it ends after so long without use */

    /* While it is paused; its deadlines do not move. */
    int64_t paused_ms; /* since 1970 */
    int64_t paused_at; /* on the clock of deadlines */
    deadline pause_ends;
    uint64_t cpu_when_paused_us; /* UINT64_MAX: not read yet */
    bool is_over_day;            /* its key has used its processor time of the day */
    bool is_held;                /* its processes are stopped, and not only its files kept */
    bool is_stopped;             /* by signals: there is no freezer, or it did not freeze all */

    struct egress_route *route;      /* to the network, if the policy allows */
    struct egress_route *past_route; /* of the sandbox before, until its records have come */
    bool waits_for_past;
    struct egress_route_bytes route_used; /* by earlier routes */
    size_t records_told;                  /* records of `route` that cells have reported */
    struct route_usage *route_usages;     /* of programs that report connections: route_usage.h */
    uint64_t egress_route_asks, egress_route_answers;
    struct run
        *first_untold; /* cells that wait for glovebox-egress to report, in order of their end */
    unsigned cells_running;

    struct context *contexts;
    bool has_parked_interpreter; /* it came with the sandbox, and no context has taken it */
    unsigned context_count;
    uint32_t last_context;
    uint64_t cells;     /* that have ended */
    uint64_t processes; /* that clients have started */
    struct session_deeds transfer_counts;

    char parent[SESSION_ID_SIZE]; /* the session it was branched from; "": none */
    char parent_context[CONTEXT_ID_SIZE];
    char parent_checkpoint[SESSION_ID_SIZE]; /* "": from a live session */
    struct bytes not_carried;                /* texts, each ended by NUL: what was not copied */
    struct branching *branching;             /* while it is being made */
    unsigned session_checkpoint_count;

    enum session_end end;
    error why;
    struct session_listener *listeners;
};

enum { SESSION_START_MS = 60000, SESSION_LOOK_MS = 1000 };

/* After the use of a session: the next check is within SESSION_LOOK_MS. */
static inline void sessions_wake(struct sessions *sessions)
{
    if (sessions->are_unused && uv_timer_get_due_in(&sessions->timer) > SESSION_LOOK_MS)
        (void) uv_timer_again(&sessions->timer);
    sessions->are_unused = false;
}

void sessions_look_in_time(const struct session *session); /* by its next deadline */
void session_forget(struct sessions *sessions, struct session *session);
void sessions_forget_old(struct sessions *sessions);
void sessions_list(struct sessions *sessions, struct session *session); /* adds it as the newest */

/* For an event of the log of this kind about a session. */
struct event_field;
/* Writes it into the log, and charges its account; does nothing without a log. */
int session_write_event(const struct session *session, const char *kind,
                        const struct event_field *fields, error *err);
int session_write_log(const struct session *session, const char *kind, error *err);
