/* contexts.h - contexts: stateful interpreters of a session.
 *
 *  cold --> starting --> idle <--> busy        If the interpreter ends, by itself or by us, the
 *    ^         |          |         |          context is cold: the next cell starts a new one.
 *    +---------+----------+---------+
 *
 * Cells are runs in the session's sandbox (run_kind.h); their states are in
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
    struct session_operation process; /* frames of its interpreter */
    deadline start_ends;              /* while starting */
    bool is_fresh;                    /* the interpreter has not run a cell yet */
    bool is_ending;                   /* the interpreter was killed: no cell begins */
    bool is_removed;                  /* freed when its process has ended */
    const char *end;                  /* why the last interpreter ended; NULL: none has */
    bool end_is_ours;                 /* `end` is set before the interpreter has ended */

    struct capture *copies; /* copies of it, under way and waiting: capture.h */
    struct run *running;
    struct run *first_queued, *last_queued;
    unsigned queued;
    uint32_t cells;                /* begun */
    struct bytes between;          /* output while no cell ran: the next one gets it */
    struct session_operation file; /* writes the code of a cell, for a driver */
    struct context *next;
};

enum { CONTEXT_START_MS = 60000 };

/* How a language gets its interpreter. `driver` is the program that runs cells, NULL for a forked
 * interpreter. */
struct context_kind {
    const char *language;
    const char *command[4]; /* the driver follows as the last argument */
    const char *driver;
};
/* The template's name of a language: javascript and node are one. */
const char *context_language(const struct template *template, const char *name);
const struct context_kind *context_kind_of(const char *language); /* NULL: it has no cells */

/* The data of a run that is a cell. */
struct cell {
    struct context *context; /* NULL after its end */
    char session_id[SESSION_ID_SIZE];
    char context_id[CONTEXT_ID_SIZE];
    uint32_t number;
    struct context_request request; /* until it has begun */
    bool is_first;                  /* of its interpreter, which may not take interrupts yet */
    bool is_interrupted;
    bool is_killed;            /* it did not stop on the interrupt */
    struct session *session;   /* whose route it uses, until that was reported */
    size_t records_told;       /* of the route, before it began */
    uint64_t egress_route_ask; /* number of the request that it waits for */
};

/* contexts.c */
void context_proceed(struct context *context); /* begins the next cell, if it is idle */
void context_kill(struct context *context);
int context_warm(struct context *context, error *err); /* if that can be done at once */
struct session_operation context_operation(struct context *context); /* of its interpreter */
extern const struct session_activity context_activity;
int context_on_frame(struct context *context, const struct agent_frame *frame,
                     const unsigned char *payload, error *err);
void context_free(struct context *context);

/* capture.c: copies come before cells. */
void copies_proceed(struct context *context); /* begins one, if the context is idle */
bool copies_hear(struct context *context, const struct agent_frame *frame,
                 const unsigned char *payload); /* false: not for a copy */
void copies_end(struct context *context, const error *why);
void copies_look(struct context *context); /* each second */

/* session_approval.c: may this account start any program in the session? Fails  ERR_POLICY. */
int session_check_approval(const struct session *session, const struct account *asker,
                           struct approvals *approvals, error *err);

/* cell.c */
int cell_new(struct context *context, struct context_request *request, struct run **ret_run,
             error *err);
void cell_begin(struct run *run);
int cell_on_frame(struct run *run, const struct agent_frame *frame, const unsigned char *payload,
                  error *err);
void cell_interrupt(struct run *run);
/* Ends a cell that has not begun, or whose session has ended; `why` is the reason. */
void cell_lost_session(struct run *run, const error *why);
void cell_code_is_sent(struct run *run);
/* Ends a cell whose code could not be written into the sandbox. */
void cell_end_unwritten(struct run *run, const error *why);

/* cell_code.c. Fails  the session does not accept it. */
int cell_send_code(struct run *run, error *err);

/* session_route.c: the network route of a session, whose connections its cells report. */
bool session_has_egress(const struct session *session);
enum { EGRESS_ROUTE_IS_AWAITED = 1 };
int session_route_open(struct session *session, error *err); /* 0, -1, or EGRESS_ROUTE_IS_AWAITED */
void session_ready(struct session *session);                 /* session.c: the route is open */
void session_open_egress(struct session *session); /* session.c: opens the route if it can */
void session_route_close(struct session *session);
/* The sandbox ends; the route of the next one has the rest of the bytes. */
void session_route_detach(struct session *session);
void session_route_begins(struct session *session, struct run *run);

/* Returns whether the cell may end now; else it is ended later. */
bool session_route_ends(struct session *session, struct run *run);
void session_route_is_late(struct run *run); /* ends the cell with the records that are known */

/* language_drivers.c: starts the program that runs the cells of a language other than Python. */
int context_start_driver(struct context *context, error *err);

/* context_state.c: a description; static text. */
const char *context_describe_end(const struct context *context, const struct agent_exited *exited);
