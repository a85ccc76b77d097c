/* launch.h - starts and ends glovebox-spawner and gloveboxd together.
 *
 *     launcher --fork--> glovebox-spawner <--socket--> gloveboxd <--fork-- launcher
 *
 * Both start at once, with an empty environment and no descriptor but those that they need.
 * gloveboxd gets a signal when the launcher ends; the spawner sees its socket close, and then has
 * time to remove everything. */
#pragma once

#include "base/clock.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct settings;

enum { LAUNCH_FDS_MAX = 8 };

/* What to start. Zero-fill it, set what you need. */
struct launch_plan {
    const char *state; /* where templates are; NULL: the default */
    bool private;      /* ends with its last connection and keeps nothing on disk */
    bool warm;         /* a private one with warmed interpreters: for cells and sessions */
    unsigned slots;    /* sandboxes at once; 0: a few */
    int control;       /* gloveboxd's socket for new settings; 0: none */
    const struct settings *settings; /* of glovebox-egress and glovebox-notify; NULL: defaults */
    const char *daemon_settings;     /* of gloveboxd, "key=value" a line; NULL: defaults */
    bool network;                    /* starts glovebox-egress: policies may allow destinations */
    int log;                    /* both write their log here; 0: to memory, for launch_cause() */
    const char *first_template; /* its fork server starts at once, others when needed */

    /* Borrowed. */
    size_t connection_count;
    int connections[LAUNCH_FDS_MAX];
    size_t listen_count;
    int listens[LAUNCH_FDS_MAX];
};

/* Programs that connect outwards for gloveboxd, over a socket whose other end gloveboxd keeps: a
 * helper that ends is started again with the same socket. */
enum helper_id { HELPER_EGRESS, HELPER_NOTIFY, HELPERS };

struct helper {
    pid_t pid; /* 0: not running */
    int pidfd;
    int socket; /* its end; -1: the plan has no such helper */
};

struct launch {
    pid_t spawner, daemon; /* 0: ended and reaped */
    struct helper helpers[HELPERS];
    pid_t waker; /* see groups_wake() */
    int spawner_pidfd, daemon_pidfd;
    int spawner_status, daemon_status; /* of waitpid(2); 0 if it was killed */
    int log;                           /* memfd that both write to; -1 if the plan has a log */
};

/* Starts both. Fails  ERR_UNAVAILABLE  a part or a template is missing; ERR_SYSTEM. */
int launch_start(const struct launch_plan *plan, struct launch *ret_launch, error *err);

/* Starts a helper again after it has ended; gloveboxd keeps its end of the socket. */
int launch_helper(const struct launch_plan *plan, enum helper_id id, struct launch *launch,
                  error *err);
const char *helper_name(enum helper_id id);

/* The value before anything was started. */
struct launch launch_none(void);

/* Waits until both have ended by themselves, at most until `end`; then kills them. */
void launch_end(struct launch *launch, deadline end);

/* True if the spawner has said why it cannot work; *err is its reason. */
bool launch_has_complained(const struct launch *launch, error *err);

/* Fails with the reason why they do not answer: the last failure that one of them logged. */
int launch_cause(const struct launch *launch, error *err);

/* Gives STATE/daemon, which the caller frees: the folder of gloveboxd. Makes it for gloveboxd's
 * user if it does not exist. */
int launch_state_folder(const char *state, char **ret_folder, error *err);

/* True if there is a template of this name. */
bool launch_has_template(const char *state, const char *name);
