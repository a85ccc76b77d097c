/* session_registry.h - sessions and their contexts, for doors.
 *
 * A session is a sandbox that is kept: it is created, ends at deadlines that only the daemon knows,
 * and is kept as a tombstone. Operations inside it are in session.h. */
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

enum { TOMBSTONES_MAX = 1000 }; /* ended sessions that are kept; the oldest is dropped */

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

/* Why it has ended; session_registry.c has the texts. */
enum session_end {
    END_NONE,
    END_DELETED, /* by a request */
    END_IDLE,    /* not used for its idle time */
    END_AGE,     /* at the end of its time to live */
    END_LOST,    /* its sandbox broke */
    END_FAILED,  /* it could not be built */
    END_STOPPED, /* the daemon was stopped */
    END_DAEMON,  /* the daemon died before it: found at the next start */
    SESSION_ENDS
};

/* A request for a session, or a change of one. Zero-filled: nothing is set. */
struct session_request {
    struct run_request *place; /* policy, template, limits, env; owns the texts */
    const char *folder;        /* default for its contexts; NULL: /workspace */
    struct json_object *metadata;
    bool has_idle, has_ttl;
    uint64_t idle_ms, ttl_ms;
    const char *id; /* from session_choose_id(); NULL: any */
};

/* A request for a new context, or for one cell. */
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
    bool is_turning; /* `file` is being synced, then `other` is emptied */
};

struct sessions {
    uv_loop_t *loop;
    struct runs *runs; /* cells are runs, and share their memory */
    struct pool *pool;
    const struct policies *policies;
    const struct templates *templates;
    const struct session_activity *const *activities; /* ended by NULL: activity.h */
    unsigned alive, ended;
    unsigned branching; /* that begin as branches */
    struct session *newest, *oldest;
    uv_timer_t timer;     /* for the next deadline */
    deadline look_at_all; /* when unused ones are checked too */
    bool are_unused;      /* none is used: the timer is slower than a second */
    bool lacks_slot;      /* one may wait for a slot */
    struct tombstones tombstones;
    uint64_t session_checkpoint_bytes,
        session_checkpoint_bytes_max; /* of checkpoints of all sessions */
    unsigned session_checkpoint_count;
};

/* The first six members have been set, all borrowed. `state` is the daemon's folder, NULL: none. */
int sessions_open(struct sessions *sessions, const char *state, error *err);

/* Tries to take the list of sessions in the state folder; while another daemon has it, our sessions
 * are not written there. Returns 0, or SESSIONS_ELSEWHERE. */
enum { SESSIONS_ELSEWHERE = 1 };
int sessions_take_over(struct sessions *sessions, error *err);

/* The daemon is stopping: ends all sessions, and lets the next daemon take the list. */
void sessions_leave(struct sessions *sessions);
void sessions_close(struct sessions *sessions);

/* The pool has room: the next session that waits for a slot is started. */
void sessions_proceed(struct sessions *sessions);

/* Ends all sessions. */
void sessions_end(struct sessions *sessions, enum session_end end);

/* Reads a request from JSON, which it takes, also on failure. `is_new` is false for a change. */
int session_request_read(struct json_object *json, bool is_new, struct session_request *ret_request,
                         error *err);
void session_request_done(struct session_request *request);

/* Begins a session, new if `source` is NULL, else as a branch (branch.h has more of it). Takes the
 * contents of the request, also on failure. Gives  *ret_session, borrowed; it runs at once, or when
 * its listeners are notified. Fails  ERR_BUSY  as many as the policy or this machine allows are
 * alive; else as run_plan_grant(). */
struct session_source;
void session_choose_id(char ret_id[SESSION_ID_SIZE]);
int session_create(struct sessions *sessions, struct session_request *request,
                   const struct session_source *source, struct session **ret_session, error *err);

/* NULL if there is none with this id that the account may see, or it ended long ago and was
 * dropped. */
struct session *sessions_find(const struct sessions *sessions, const struct account *account,
                              const char *id);

/* Finds a session for use by this account. A key may use no session whose policy it may not use,
 * even if another key of its tenant began it. The session is alive: `spec` is filled in. Fails
 * ERR_NOT_FOUND, ERR_FORBIDDEN; ERR_CONFLICT  it has ended. */
int sessions_enter(const struct sessions *sessions, const struct account *account, const char *id,
                   struct session **ret_session, error *err);

/* The same, also for tombstones: `spec` is empty in one that an earlier daemon left. */
int sessions_look(const struct sessions *sessions, const struct account *account, const char *id,
                  struct session **ret_session, error *err);

/* Changes deadlines and metadata. Takes the contents of the request. */
int session_change(struct session *session, struct session_request *request, error *err);

/* session.c: charges its account for the processor time used in it since the last call: by cells,
 * programs, and processes that outlive them. */
void session_charge(struct session *session);

/* pause.c: stops every program in it, or ends all and keeps its files. Its init goes on, so that
 * frames that were sent arrive. Fails  ERR_CONFLICT  it does not run, or a cell does. */
int session_pause(struct session *session, bool files_only, error *err);
/* Fails  ERR_QUOTA  its key has used its processor time of the day. */
int session_resume(struct session *session, error *err);
void session_look_at_day(struct session *session);   /* pauses it if its key's day is used up */
void session_look_at_pause(struct session *session); /* regularly, while it is paused */
/* "freezer" or "signals"; NULL: it is not paused, or has no programs. */
const char *session_held_by(const struct session *session);

/* session.c: takes a sandbox from the pool. */
int session_lease(struct session *session, error *err);
void session_filled(struct session *session); /* its sandbox has its files and interpreter */
struct lease session_lease_of(const struct session *session);

/* Ends everything in it, with this cause, and replaces its sandbox by another, which it takes;
 * session_filled() follows. */
void session_move(struct session *session, struct sandbox *sandbox, enum run_start start,
                  const error *cause);
void session_list(struct session *session, struct session_operation *operation);
void sessions_ended(struct sessions *sessions, struct session *session);

/* Ends everything in it, and all waits for it. */
void session_end(struct session *session, enum session_end end, const error *why);

void session_listen(struct session *session, struct session_listener *listener);
void session_unlisten(struct session *session, struct session_listener *listener);
void session_tell(struct session *session); /* notifies its listeners */

/* From the counters that were last read, and those of earlier sandboxes. */
struct session_usage session_usage(const struct session *session);

/* Adds it as a Session of docs/api.md; an array of its contexts. */
void session_write(struct session *session, struct bytes *out);
void session_write_contexts(const struct session *session, struct bytes *out);

/* What other folders may know of a session; borrowed. */
enum session_state session_state(const struct session *session);
unsigned sessions_count(const struct sessions *sessions, enum session_state state);
bool session_is_branch(const struct session *session);
bool session_has_failed(const struct session *session); /* ended: it could not be built */
bool session_is_lost(const struct session *session);    /* ended: that, or its sandbox was lost */
/* Fails  with the reason why it has ended. */
int session_check_alive(const struct session *session, error *err);
const struct run_spec *session_plan(const struct session *session);
const struct run_request *session_place(const struct session *session); /* the request */
struct json_object *session_metadata(const struct session *session);    /* NULL: none */
struct session *session_older(const struct session *session);           /* NULL: none */
struct runs *session_runs(const struct session *session);
/* The processor time of its sandbox until now. */
uint64_t session_cpu_us(const struct session *session);
/* Adds the facts about its policy, template and sandbox to a receipt. */
void session_add_facts(const struct session *session, struct receipt_facts *facts);
void session_count_process(struct session *session); /* a client has started one */
void session_end_once_read(struct session *session); /* when no branch reads it any more */

/* May this account see it? */
bool session_is_seen(const struct session *session, const struct account *account);

const char *session_end_name(enum session_end end);
const char *session_end_kept(enum session_end end); /* a sentence on what was kept */

int context_request_read(struct json_object *json, bool is_cell,
                         struct context_request *ret_request, error *err);
void context_request_done(struct context_request *request);

/* Begins a context. Takes the contents of the request. */
int context_create(struct session *session, struct context_request *request,
                   struct context **ret_context, error *err);

/* Finds a context by id. The name of a language is the id of its first context, which is made when
 * it is first named. */
int context_find(struct session *session, const char *id, struct context **ret_context, error *err);

/* Adds it as a Context of docs/api.md. */
void context_write(const struct context *context, struct bytes *out);

/* Queues a cell. Takes the contents of the request. Gives  a run, as runs_submit(), with the same
 * result, events and cancelling; to cancel it interrupts the interpreter. */
int context_run(struct context *context, struct context_request *request, struct run **ret_run,
                error *err);
enum { CONTEXT_WAS_IDLE = 1 };
int context_interrupt(struct context *context, error *err);
int context_restart(struct context *context, error *err);
void context_remove(struct context *context);
