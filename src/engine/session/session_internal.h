/* session_internal.h - a session from inside, and what the files of the table of sessions share:
 * session_registry.c has it, session_create.c adds to it, session_deadlines.c ends what is over. */
#pragma once

#include "engine/network/egress_client.h"
#include "engine/session/session_registry.h"

struct session {
    /* What is_unused() asks of each once a second: two lines of the processor's cache. */
    struct session *older, *newer;
    struct sessions *sessions;
    struct account *account; /* whose it is: accounts.h */
    enum session_state state;
    unsigned holds;
    bool was_used;       /* an operation has begun: before, nothing of its client runs in it */
    bool delete_pending; /* it ends as soon as no branch reads it any more */
    deadline idle_ends, age_ends;
    int64_t looked_at_ms;     /* its idle_ends when it was looked at last: moved, it was used */
    struct context *injected; /* the one whose interpreter is being forked: one at a time */
    struct session_checkpoint *checkpoints; /* the newest first: checkpoints.h */
    struct rollback *rollback;              /* to one of them, while it is on its way */

    char id[SESSION_ID_SIZE];
    struct session_request request; /* until it has ended */
    struct run_spec plan;
    struct json_object *metadata; /* an object of texts */

    char owner[BLOB_OWNER_SIZE]; /* of the account; what an earlier daemon left has no other */
    bool waits_for_room;         /* while starting: every slot is taken */
    deadline start_ends;
    struct pool_ticket *pending_lease;
    struct sandbox *sandbox;
    enum run_start start;
    uint64_t walls, degraded;
    struct counters counters;    /* as they were read last, of this sandbox */
    struct session_usage before; /* of the sandboxes before it: ways back */

    struct session_operation *operations;
    unsigned operation_count;
    uint32_t last_id;
    uint64_t charged_us; /* of its processor time, to its account */
    deadline charge_due; /* where no request waits for it */
    int64_t charge_ms;   /* until the one after it */

    int64_t created_ms, ended_ms; /* since 1970 */
    int64_t began_at;             /* on the clock of deadlines; pauses are no part of its age */
    uint64_t idle_ms;             /* it ends when it was not used for so long */

    /* While it is paused; its deadlines stand still. */
    int64_t paused_ms; /* since 1970 */
    int64_t paused_at; /* on the clock of deadlines */
    deadline pause_ends;
    uint64_t cpu_when_paused_us; /* UINT64_MAX: not read yet */
    bool is_over_day;            /* its key's processor time of the day was used up */
    bool is_held;    /* what runs in it is to stand still: not where its files alone are kept */
    bool is_stopped; /* by signals: there is no freezer, or it has not frozen all */

    struct egress_route *route; /* out of the sandbox, where the policy has one */
    struct egress_route
        *past_route; /* of the sandbox before this, until it is known what has passed there */
    bool waits_for_past;
    struct egress_route_bytes route_used; /* by ways before this one */
    size_t records_told;                  /* of it, by cells that have ended */
    struct route_usage *route_usages;     /* programs that tell what passed there: route_usage.h */
    uint64_t egress_route_asks, egress_route_answers;
    struct run
        *first_untold; /* cells that have ended, in order; glovebox-egress has the last word */
    unsigned cells_running;

    struct context *contexts;
    bool has_parked_interpreter; /* it came with the sandbox, and no context has taken it */
    unsigned context_count;
    uint32_t last_context;
    uint64_t cells;     /* that have ended */
    uint64_t processes; /* that clients have started */
    struct session_deeds transfer_counts;

    char parent[SESSION_ID_SIZE]; /* that it began from; "": it began empty */
    char parent_context[CONTEXT_ID_SIZE];
    char parent_checkpoint[SESSION_ID_SIZE]; /* "": it was alive */
    struct bytes not_carried;    /* texts, each ended by NUL: what lived there and does not here */
    struct branching *branching; /* while it is made */
    unsigned session_checkpoint_count;

    enum session_end end;
    error why;
    struct session_listener *listeners;
};

enum { SESSION_START_MS = 60000, SESSION_LOOK_MS = 1000 };

/* One of them is used: the next look comes within SESSION_LOOK_MS. */
static inline void sessions_wake(struct sessions *sessions)
{
    if (sessions->are_unused && uv_timer_get_due_in(&sessions->timer) > SESSION_LOOK_MS)
        (void) uv_timer_again(&sessions->timer);
    sessions->are_unused = false;
}

void sessions_look_in_time(const struct session *session); /* at its next deadline */
void session_forget(struct sessions *sessions, struct session *session);
void sessions_forget_old(struct sessions *sessions);
void sessions_list(struct sessions *sessions, struct session *session); /* as the newest */

/* An event of the log of this kind about a session. */
struct event_field;
/* Writes it into the log, at the cost of its account; nothing where there is no log. */
int session_write_event(const struct session *session, const char *kind,
                        const struct event_field *fields, error *err);
int session_write_log(const struct session *session, const char *kind, error *err);
