/* session_registry.h - the whole interface that doors have to sessions and their contexts.
 *
 * A session is a sandbox that is kept: it is created, lives by deadlines that only the daemon
 * holds, and ends as its own tombstone. What works inside it is in session.h. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/run/queue.h"
#include "engine/run/run_plan.h"
#include "engine/run/run_request.h"
#include "engine/session/activity.h"
#include "engine/session/session.h"
#include "engine/session/transfer_counts.h"

#include <json.h>
#include <stdbool.h>
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
    END_DELETED, /* a request asked for it */
    END_IDLE,    /* it was not used for so long */
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
struct receipt_facts;

struct session_usage {
    uint64_t cpu_us, memory_peak_bytes, processes_peak;
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
    uv_timer_t timer;     /* for the next deadline */
    deadline look_at_all; /* those too that nothing uses */
    bool are_unused;      /* all: the timer rests for longer than a second */
    bool lacks_slot;      /* one of them may wait for a slot */
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
 * Gives  *ret_session, borrowed; it runs at once, or when its listeners are notified.
 * Fails  ERR_BUSY  as many as the policy or this machine allows are alive; else as
 * run_plan_grant(). */
struct session_source;
void session_choose_id(char ret_id[SESSION_ID_SIZE]);
int session_create(struct sessions *sessions, struct session_request *request,
                   const struct session_source *source, struct session **ret_session, error *err);

/* NULL if none that this account may see has this id, or it ended long ago and is forgotten. */
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

/* Adds it as a Session of docs/api.md; an array of its contexts. */
void session_write(struct session *session, struct bytes *out);
void session_write_contexts(const struct session *session, struct bytes *out);

/* What other folders may know of a session; borrowed. */
enum session_state session_state(const struct session *session);
unsigned sessions_count(const struct sessions *sessions, enum session_state state);
bool session_is_branch(const struct session *session);
bool session_has_failed(const struct session *session); /* ended: it could not be built */
bool session_is_lost(const struct session *session);    /* ended: that, or its sandbox broke */
/* Fails  with why it has ended. */
int session_check_alive(const struct session *session, error *err);
const struct run_spec *session_plan(const struct session *session);
const struct run_request *session_place(const struct session *session); /* what was asked for */
struct json_object *session_metadata(const struct session *session);    /* NULL: none */
struct session *session_older(const struct session *session);           /* NULL: it is the oldest */
struct runs *session_runs(const struct session *session);
/* What its sandbox has used by now. */
uint64_t session_cpu_us(const struct session *session);
/* Those of its place: what a receipt says of anything that works in it. */
void session_add_facts(const struct session *session, struct receipt_facts *facts);
void session_count_process(struct session *session); /* a client has started one */
void session_end_once_read(struct session *session); /* as soon as no branch reads it any more */

/* Does it exist for this account? */
bool session_is_seen(const struct session *session, const struct account *account);

const char *session_end_name(enum session_end end);
const char *session_end_kept(enum session_end end); /* what is left of it, in a sentence */

int context_request_read(struct json_object *json, bool is_cell,
                         struct context_request *ret_request, error *err);
void context_request_done(struct context_request *request);

/* Begins a context. Takes what is in the request. */
int context_create(struct session *session, struct context_request *request,
                   struct context **ret_context, error *err);

/* A context by its id; the name of a language is the id of its first context, which is made when it
 * is first named. */
int context_find(struct session *session, const char *id, struct context **ret_context, error *err);

/* Adds it as a Context of docs/api.md. */
void context_write(const struct context *context, struct bytes *out);

/* Puts a cell behind those that wait. Takes what is in the request.
 * Gives  a run, as runs_submit(): the same result, events and cancelling, where to cancel is to
 * interrupt. */
int context_run(struct context *context, struct context_request *request, struct run **ret_run,
                error *err);
enum { CONTEXT_WAS_IDLE = 1 };
int context_interrupt(struct context *context, error *err);
int context_restart(struct context *context, error *err);
void context_remove(struct context *context);
