/* session_registry.h - the whole interface that doors have to sessions and their contexts.
 *
 * A session is a sandbox that is kept: it is created, lives by deadlines that only the daemon
 * holds, and ends as its own tombstone. What works inside it is in session.h. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "base/error.h"
#include "engine/network/egress_client.h"
#include "engine/run/queue.h"
#include "engine/run/run_plan.h"
#include "engine/run/run_request.h"
#include "engine/session/activity.h"
#include "engine/session/session.h"
#include "engine/session/transfer_counts.h"

#include <json.h>
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

enum { TOMBSTONES_MAX = 1000 }; /* of ended sessions that are known; the oldest is forgotten */

enum {
    SESSION_ID_SIZE = 37, /* "ses_", 32 hex digits and the end */
    CONTEXT_ID_SIZE = 64,
    CONTEXTS_MAX = 16,      /* in one session */
    CELLS_WAITING_MAX = 32, /* in one context */
    METADATA_MAX = 64,      /* keys */
    METADATA_BYTES_MAX = 16 * 1024,
};

enum session_state {
    SESSION_STARTING,
    SESSION_RUNNING,
    SESSION_PAUSED,
    SESSION_ENDED,
    SESSION_STATES
};

/* Why it has ended; the words are in session_registry.c. */
enum session_end {
    END_NONE,
    END_DELETED, /* somebody asked for it */
    END_IDLE,    /* nobody has used it for so long */
    END_AGE,     /* its time to live is over */
    END_LOST,    /* its sandbox broke */
    END_FAILED,  /* it could not be built */
    END_STOPPED, /* the daemon was stopped in good order */
    END_DAEMON,  /* the daemon had ended before the session: found when it came back */
    SESSION_ENDS
};

/* What a caller asks of a session, or changes about it. Zero-filled it asks for nothing. */
struct session_request {
    struct run_request *place; /* policy, template, limits, env: the texts' owner */
    const char *folder;        /* of contexts that name none; NULL: /workspace */
    struct json_object *metadata;
    bool has_idle, has_ttl;
    uint64_t idle_ms, ttl_ms;
    const char *id; /* that it is to have, as session_choose_id() made it; NULL: any */
};

/* What a caller asks of a new context, or of one cell. */
struct context_request {
    struct run_request *given; /* language, env, code, limits */
    const char *folder;
};

struct session_listener {
    void *context;
    void (*changed)(void *context, struct session *session);
    struct session_listener *next;
};

struct context;

struct session_usage {
    uint64_t cpu_us, memory_peak_bytes, processes_peak;
};

struct session {
    char id[SESSION_ID_SIZE];
    struct account *account; /* whose it is: accounts.h */
    enum session_state state;
    struct sessions *sessions;
    struct session_request request; /* until it has ended */
    struct run_spec plan;
    struct json_object *metadata; /* an object of texts */

    char owner[BLOB_OWNER_SIZE]; /* of the account; what an earlier daemon left has no other */
    bool waits_for_room;         /* while starting: every slot is taken */
    bool delete_pending;         /* it ends as soon as no branch reads it any more */
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
    unsigned holds;

    int64_t created_ms, ended_ms; /* since 1970 */
    uint64_t idle_ms;             /* it ends when nobody has used it for so long */
    deadline idle_ends, age_ends;

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
    struct context *injected; /* the one whose interpreter is being forked: one at a time */
    uint32_t last_context;
    uint64_t cells;     /* that have ended */
    uint64_t processes; /* that clients have started */
    struct session_deeds transfer_counts;

    char parent[SESSION_ID_SIZE]; /* that it began from; "": it began empty */
    char parent_context[CONTEXT_ID_SIZE];
    char parent_checkpoint[SESSION_ID_SIZE]; /* "": it was alive */
    struct bytes not_carried;    /* texts, each ended by NUL: what lived there and does not here */
    struct branching *branching; /* while it is made */
    struct session_checkpoint *checkpoints; /* the newest first: checkpoints.h */
    unsigned session_checkpoint_count;
    struct rollback *rollback; /* to one of them, while it is on its way */

    enum session_end end;
    error why;
    struct session_listener *listeners;
    struct session *older, *newer;
};

/* The files of session_tombstones.h, their lock and folder; -1: none. */
struct tombstones {
    int file, other, lock, folder;
    unsigned lines;  /* in `file` */
    bool is_turning; /* `file` is on its way to the disk, then `other` is emptied */
};

struct sessions {
    uv_loop_t *loop;
    struct runs *runs; /* cells are runs, and share their memory */
    struct pool *pool;
    const struct policies *policies;
    const struct templates *templates;
    const struct session_activity *const *activities; /* ended by NULL: activity.h */
    unsigned alive, ended;
    unsigned branching; /* that begin from another one */
    struct session *newest, *oldest;
    uv_timer_t timer; /* for the next deadline */
    struct tombstones tombstones;
    uint64_t session_checkpoint_bytes,
        session_checkpoint_bytes_max; /* of checkpoints of all sessions */
    unsigned session_checkpoint_count;
};

/* The first six have been set, all borrowed. `state` is the daemon's folder, NULL for none. */
int sessions_open(struct sessions *sessions, const char *state, error *err);

/* While another daemon notes its sessions in the state folder, ours are not noted there. Tries to
 * become the one who does. Returns 0, or SESSIONS_ELSEWHERE. */
enum { SESSIONS_ELSEWHERE = 1 };
int sessions_take_over(struct sessions *sessions, error *err);

/* Ends all of them in good order; the next daemon may note its own from now on. */
void sessions_leave(struct sessions *sessions);
void sessions_close(struct sessions *sessions);

/* The pool has room: who waits for it is next. */
void sessions_proceed(struct sessions *sessions);

/* Ends all of them. */
void sessions_end(struct sessions *sessions, enum session_end end);

/* Reads a request from JSON, which it takes, also when it fails. `is_new` is false for a change. */
int session_request_read(struct json_object *json, bool is_new, struct session_request *ret_request,
                         error *err);
void session_request_done(struct session_request *request);

/* Begins a session, empty with `source` NULL, else as a branch (branch.h has more of it). Takes
 * what is in the request, also when it fails.
 * Gives  *ret_session, borrowed; it runs at once, or when its listeners are told.
 * Fails  ERR_BUSY  as many as the policy or this machine allows are alive; else as
 * run_plan_grant(). */
struct session_source;
void session_choose_id(char ret_id[SESSION_ID_SIZE]);
int session_create(struct sessions *sessions, struct session_request *request,
                   const struct session_source *source, struct session **ret_session, error *err);

/* NULL if none that this account may see has this id, or it ended so long ago that it is forgotten.
 */
struct session *sessions_find(const struct sessions *sessions, const struct account *account,
                              const char *id);

/* One that this account is about to use: a key may do nothing in a session whose policy it may not
 * use, whichever key of its tenant has begun it. What it gives is alive: `spec` is filled in.
 * Fails  ERR_NOT_FOUND, ERR_FORBIDDEN; ERR_CONFLICT  it has ended. */
int sessions_enter(const struct sessions *sessions, const struct account *account, const char *id,
                   struct session **ret_session, error *err);

/* The same, and tombstones too: `spec` is empty in one that an earlier daemon left. */
int sessions_look(const struct sessions *sessions, const struct account *account, const char *id,
                  struct session **ret_session, error *err);

/* Changes deadlines and metadata. Takes what is in the request. */
int session_change(struct session *session, struct session_request *request, error *err);

/* session.c: charges its account for the processor time that was used in it since the last time: by
 * cells, programs, and what outlives them. */
void session_charge(struct session *session);

/* pause.c: stops every program in it where it stands, or ends them all and keeps its files.
 * Its init goes on: what was on its way arrives.
 * Fails  ERR_CONFLICT  it does not run, or a cell does. */
int session_pause(struct session *session, bool files_only, error *err);
/* Fails  ERR_QUOTA  the processor time of its key's day is used up. */
int session_resume(struct session *session, error *err);
void session_look_at_day(struct session *session);   /* it is paused where its key's is over */
void session_look_at_pause(struct session *session); /* now and then, while it is paused */
/* "freezer" or "signals"; NULL: it is not paused, or has no programs. */
const char *session_held_by(const struct session *session);

/* session.c, for sessions.c: takes a sandbox from the pool; and the other way round. */
int session_lease(struct session *session, error *err);
void session_filled(struct session *session); /* its sandbox has what it begins with */
struct lease session_lease_of(const struct session *session);

/* Everything in it ends, for this cause, and it has another sandbox, which it takes;
 * session_filled() follows. */
void session_move(struct session *session, struct sandbox *sandbox, enum run_start start,
                  const error *cause);
void session_list(struct session *session, struct session_operation *operation);
void sessions_ended(struct sessions *sessions, struct session *session);

/* Ends everything in it, and all that waits for it. */
void session_end(struct session *session, enum session_end end, const error *why);

void session_listen(struct session *session, struct session_listener *listener);
void session_unlisten(struct session *session, struct session_listener *listener);
void session_tell(struct session *session); /* them all: look again */

/* By its counters as they were read last, and by the sandboxes before. */
struct session_usage session_usage(const struct session *session);

/* Does it exist for this account? */
bool session_is_seen(const struct session *session, const struct account *account);

const char *session_end_name(enum session_end end);
const char *session_end_kept(enum session_end end); /* what is left of it, in a sentence */
enum session_end session_end_of(const char *name);

/* --- contexts: contexts.h has the inside view ----------------------------------------------------
 */

int context_request_read(struct json_object *json, bool is_cell,
                         struct context_request *ret_request, error *err);
void context_request_done(struct context_request *request);

/* Begins a context. Takes what is in the request. */
int context_create(struct session *session, struct context_request *request,
                   struct context **ret_context, error *err);

/* A context by its id; the name of a language is the id of its first context, which is made when it
 * is first named. */
int context_find(struct session *session, const char *id, struct context **ret_context, error *err);

/* Puts a cell behind those that wait. Takes what is in the request.
 * Gives  a run, as runs_submit(): the same result, events and cancelling, where to cancel is to
 * interrupt. */
int context_run(struct context *context, struct context_request *request, struct run **ret_run,
                error *err);
enum { CONTEXT_WAS_IDLE = 1 };
int context_interrupt(struct context *context, error *err);
int context_restart(struct context *context, error *err);
void context_remove(struct context *context);
struct session *context_session(const struct context *context);
