/* contexts.h - stateful interpreters of a session, as the parts of gloveboxd see them.
 *
 *  cold --> starting --> idle <--> busy        A context whose interpreter has ended, by itself or
 *    ^         |          |         |          by us, is cold: the next cell starts a fresh one.
 *    +---------+----------+---------+
 *
 * Cells are runs whose sandbox is the session's (run_kind.h); their states stand in
 * model/run_states.def. */
#pragma once

#include "engine/run/run.h"
#include "engine/session/capture.h"
#include "engine/session/session_registry.h"

enum context_state { CONTEXT_COLD, CONTEXT_STARTING, CONTEXT_IDLE, CONTEXT_BUSY, CONTEXT_STATES };

struct context {
    char id[CONTEXT_ID_SIZE];
    struct session *session;
    const struct language *language; /* of the template */
    const struct context_kind *kind;
    char *folder;
    struct variables variables; /* its whole environment */

    enum context_state state;
    struct session_operation process; /* what its interpreter says */
    deadline start_ends;              /* while starting */
    bool is_fresh;                    /* the interpreter has not run a cell yet */
    bool is_ending;                   /* its interpreter has been killed: nothing begins */
    bool is_removed;                  /* freed when its process has ended */
    const char *end;                  /* why the last interpreter has ended; NULL: none has */
    bool end_is_ours;                 /* it is known before the end itself comes */

    struct capture *copies; /* that are made of it, and that wait: capture.h */
    struct run *running;
    struct run *first_queued, *last_queued;
    unsigned queued;
    uint32_t cells;                /* begun */
    struct bytes between;          /* printed while no cell ran: it goes to the next one */
    struct session_operation file; /* the code of a cell on its way in, for a driver */
    struct context *next;
};

enum { CONTEXT_START_MS = 60000 };

/* How an interpreter of a language comes to be. `driver` is the program that runs cells, NULL for
 * one that is forked. */
struct context_kind {
    const char *language;
    const char *command[4]; /* the driver follows as the last argument */
    const char *driver;
};
/* What the template calls a language: javascript and node are one. */
const char *context_language(const struct template *template, const char *name);
const struct context_kind *context_kind_of(const char *language); /* NULL: it has no cells */

/* What a run has when it is a cell. */
struct cell {
    struct context *context; /* NULL once it has ended */
    char session_id[SESSION_ID_SIZE];
    char context_id[CONTEXT_ID_SIZE];
    uint32_t number;
    struct context_request request; /* until it has begun */
    bool is_first; /* of its interpreter, which may not listen for interrupts yet */
    bool is_interrupted;
    bool is_killed;            /* it did not heed that */
    struct session *session;   /* whose egress it uses, until that has been reported; else NULL */
    size_t records_told;       /* of that way, before it began */
    uint64_t egress_route_ask; /* number of the question that it waits for */
};

/* contexts.c */
void context_proceed(struct context *context); /* begins the next cell, if it is idle */
void context_kill(struct context *context);
int context_warm(struct context *context, error *err);               /* if that takes no time */
struct session_operation context_operation(struct context *context); /* of its interpreter */
extern const struct session_activity context_activity;
int context_on_frame(struct context *context, const struct agent_frame *frame,
                     const unsigned char *payload, error *err);
void context_free(struct context *context);

/* capture.c: copies go before cells. */
void copies_proceed(struct context *context); /* it is idle, and there is one */
bool copies_hear(struct context *context, const struct agent_frame *frame,
                 const unsigned char *payload); /* false: it is not for them */
void copies_end(struct context *context, const error *why);
void copies_look(struct context *context); /* now and then */

/* session_approval.c: may this account start a program in it, whatever it is? Fails  ERR_POLICY. */
int session_check_approval(const struct session *session, const struct account *asker,
                           struct approvals *approvals, error *err);

/* cell.c */
int cell_new(struct context *context, struct context_request *request, struct run **ret_run,
             error *err);
void cell_begin(struct run *run);
int cell_on_frame(struct run *run, const struct agent_frame *frame, const unsigned char *payload,
                  error *err);
void cell_interrupt(struct run *run);
/* It has not begun, or its session has ended: `why` says it. */
void cell_lost_session(struct run *run, const error *why);
void cell_code_is_sent(struct run *run);
/* Its code could not be written into the sandbox: it has ended. */
void cell_end_unwritten(struct run *run, const error *why);

/* cell_code.c. Fails  its session cannot take it. */
int cell_send_code(struct run *run, error *err);

/* session_route.c: the egress of a session, which its cells report. */
bool session_has_egress(const struct session *session);
enum { EGRESS_ROUTE_IS_AWAITED = 1 };
int session_route_open(struct session *session, error *err); /* 0, -1, or more comes later */
void session_ready(struct session *session);       /* session.c: what was awaited has come */
void session_open_egress(struct session *session); /* session.c: opens it if it can be */
void session_route_close(struct session *session);
void session_route_detach(
    struct session *session); /* its sandbox goes; the next has what is left */
void session_route_begins(struct session *session, struct run *run);

/* Returns whether the cell may conclude now; else it will be, later. */
bool session_route_ends(struct session *session, struct run *run);
void session_route_is_late(struct run *run); /* it concludes with what is known */

/* language_drivers.c: starts the program that runs the cells of a language other than Python. */
int context_start_driver(struct context *context, error *err);

/* context_state.c: in words; static text. */
const char *context_describe_end(const struct context *context, const struct agent_exited *exited);
