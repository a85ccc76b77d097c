/* glovebox.h - the complete C interface of glovebox: runs code that you do not trust, in a sandbox.
 *
 *     glb_client *client;
 *     if (glb_connect(NULL, 0, &client) != GLB_OK)
 *         errx(1, "%s", glb_error_text());
 *     glb_run_options options = { .code = "print(6 * 7)" };
 *     glb_outcome *outcome;
 *     if (glb_run(client, &options, sizeof options, &outcome) == GLB_OK)
 *         puts(glb_outcome_json(outcome));
 *
 * Functions return GLB_OK or one of GLB_E_*; glb_error_text() then says "cause; fix". Structs are
 * zero-filled by the caller and passed with their size: fields may be added at their end, and zero
 * is always the safe default. Text is UTF-8 and ends with NUL.
 *
 *   Threads  one call at a time for each client, glb_cancel() excepted; clients are independent.
 *   Since    0.1, all of it    See  glovebox(1), docs/reference */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define GLB_API __attribute__((visibility("default")))
#else
#define GLB_API
#endif

typedef struct glb_client glb_client;   /* a connection to gloveboxd */
typedef struct glb_outcome glb_outcome; /* how a run ended and what it made */

/* What a call returns. The numbers never change. */
enum {
    GLB_OK = 0,
    GLB_E_SYSTEM = 1,       /* the kernel refused a step */
    GLB_E_PROTOCOL = 2,     /* what answers is not gloveboxd */
    GLB_E_BAD_REQUEST = 3,  /* the request cannot be understood */
    GLB_E_LIMIT = 4,        /* a limit is out of bounds or above the policy's maximum */
    GLB_E_POLICY = 5,       /* the policy forbids it */
    GLB_E_NOT_FOUND = 6,    /* no such policy, template, run … */
    GLB_E_CONFLICT = 7,     /* not in a state that allows this */
    GLB_E_TOO_LARGE = 8,    /* larger than may be sent */
    GLB_E_BUSY = 9,         /* everything is in use        (try again) */
    GLB_E_TIMEOUT = 10,     /* no answer in time           (try again) */
    GLB_E_UNAVAILABLE = 11, /* an isolation mechanism or a template is missing; ask the operator */
    GLB_E_UNAUTHORIZED = 12,
    GLB_E_FORBIDDEN = 13,
    GLB_E_INTERNAL = 14, /* a bug in glovebox, or out of memory */
    GLB_E_CANCELLED =
        15,           /* glb_cancel() or a callback ended the call before there was an outcome */
    GLB_E_QUOTA = 23, /* a quota of the key is used up; glb_error_text() says until when */
    GLB_E_NO_PROGRAM = 24,     /* no program of that name is in the sandbox */
    GLB_E_NOT_EXECUTABLE = 25, /* the file exists, but cannot be executed */
};

/* How a run ended. */
enum {
    GLB_STATUS_OK = 0,
    GLB_STATUS_ERROR = 1, /* the program failed by itself */
    GLB_STATUS_LIMIT = 2, /* it ended badly because of a limit */
    GLB_STATUS_DENIED = 3,
    GLB_STATUS_PENDING_APPROVAL = 4,
    GLB_STATUS_CANCELLED = 5,
    GLB_STATUS_LOST = 6, /* the sandbox ended because of a failure of glovebox */
};

enum { GLB_STDOUT = 1, GLB_STDERR = 2 };

enum {
    GLB_CONNECT_ANY = 0,     /* the default socket if a daemon is there, else a private daemon */
    GLB_CONNECT_SOCKET = 1,  /* a running daemon, never a private one */
    GLB_CONNECT_PRIVATE = 2, /* a daemon of this client, which ends with glb_close() */
};

/* The library's version, as "0.1.0". */
GLB_API const char *glb_version(void);

/* Why the last call of this thread failed: "cause; fix" in one line. Valid until the next call. */
GLB_API const char *glb_error_text(void);

typedef struct glb_connect_options {
    const char *socket; /* path of the daemon's Unix socket, or "127.0.0.1:PORT"; NULL:
                           GLOVEBOX_SOCKET or the default */
    const char *state;  /* for a private daemon: where templates are; NULL: the default */
    int32_t how;        /* GLB_CONNECT_* */
    int32_t log_fd;     /* a private daemon logs to this descriptor; 0: only for error texts */
    const char *template_name; /* a private daemon prepares this one first; NULL: python */
    const char *key;           /* API key for a running daemon; NULL: GLOVEBOX_API_KEY, or none */
} glb_connect_options;

/* Connects to gloveboxd, or starts a private one.
 *
 *   Gives    *ret_client, closed with glb_close(). A private daemon ends with the calling thread.
 *   Fails    GLB_E_UNAVAILABLE  no daemon listens there, or programs or templates are missing
 *            GLB_E_SYSTEM       a process or socket could not be made */
GLB_API int32_t glb_connect(const glb_connect_options *options, size_t options_size,
                            glb_client **ret_client);

/* Ends the connection, and waits until a private daemon has ended. NULL does nothing. */
GLB_API void glb_close(glb_client *client);

/* Asks the current run of this client to end. glb_run() then returns its output and files, with
 * GLB_STATUS_CANCELLED; a second call makes glb_run() return at once with GLB_E_CANCELLED.
 *   Threads  any; also from a signal handler */
GLB_API void glb_cancel(glb_client *client);

typedef struct glb_limit {
    const char *name; /* as in a policy: "wall", "memory", "cpus" … (glovebox run --help) */
    uint64_t value;   /* bytes, milliseconds, thousandths of a processor, or a count */
} glb_limit;

typedef struct glb_file {
    const char *path;    /* its place below /workspace: "in/data.csv" */
    const void *content; /* borrowed for the call */
    size_t length;
    int32_t read_only; /* 1: the program cannot change it */
    int32_t reserved;
} glb_file;

/* Gets bytes as the program wrote them, in order within a stream (GLB_STDOUT, GLB_STDERR).
 * Returns 0, or 1 to cancel the run. */
typedef int32_t glb_on_output(void *context, int32_t stream, const void *data, size_t length);

/* Gets every other event: "started", "denial", "artifact", "result", "error", with its JSON. */
typedef int32_t glb_on_event(void *context, const char *name, const char *json);

/* What to run: `code` or `command`, never both. */
typedef struct glb_run_options {
    const char *code;
    size_t code_length;           /* bytes; 0: code ends with NUL */
    const char *language;         /* NULL: python */
    const char *file_name;        /* of the code in /workspace; NULL: it is stored elsewhere */
    const char *const *command;   /* NULL-ended list */
    const char *const *arguments; /* for the code, NULL-ended; NULL: none */
    const char *policy;           /* NULL: the daemon's default */
    const char *template_name;    /* NULL: what the policy says */
    const glb_limit *limits;      /* narrower than the policy's, or up to its maximum */
    size_t limit_count;
    const char *const *environment; /* "NAME=value", NULL-ended; NULL: none */
    const void *input;              /* stdin; NULL: none */
    size_t input_length;
    const glb_file *files;
    size_t file_count;
    size_t file_size;         /* sizeof(glb_file) */
    glb_on_output *on_output; /* NULL: only in the outcome */
    glb_on_event *on_event;
    void *context;           /* passed to both */
    const char *expectation; /* of the output: a JSON object (docs/output-validation.md). The result
                                of the check is "gate" of glb_outcome_json(); NULL: none */
} glb_run_options;

/* Runs code in a sandbox of its own and waits for its end.
 *
 *   Gives    *ret_outcome, freed with glb_outcome_free(). A program that fails, or that a limit
 *            ended, is an outcome, not a failure.
 *   Fails    GLB_E_BAD_REQUEST  no code, not UTF-8, an unknown language …
 *            GLB_E_LIMIT        a limit is out of bounds or above the policy's maximum
 *            GLB_E_NOT_FOUND    no such policy or template
 *            GLB_E_BUSY         every sandbox is in use (try again)
 *            and the others as their comments say */
GLB_API int32_t glb_run(glb_client *client, const glb_run_options *options, size_t options_size,
                        glb_outcome **ret_outcome);

GLB_API void glb_outcome_free(glb_outcome *outcome);

/* The whole result as JSON, as POST /v1/runs answers it. Texts live as long as the outcome. */
GLB_API const char *glb_outcome_json(const glb_outcome *outcome);

GLB_API int32_t glb_outcome_status(const glb_outcome *outcome);    /* GLB_STATUS_* */
GLB_API int32_t glb_outcome_exit_code(const glb_outcome *outcome); /* -1 if there is none */
GLB_API int32_t glb_outcome_signal(const glb_outcome *outcome);    /* 0 if none ended it */

/* The exit status that `glovebox run` gives for it: the program's own; 124 ended by a limit, 137
 * out of memory, 125 lost, 126 denied, 130 cancelled; 65 if the program has ended with 0, but its
 * output does not meet the expectation, or could not be checked. */
GLB_API int32_t glb_outcome_exit_status(const glb_outcome *outcome);

/* The kept output of a stream. Gives *ret_data, ended by NUL, and *ret_length without it. */
GLB_API int32_t glb_outcome_output(const glb_outcome *outcome, int32_t stream,
                                   const char **ret_data, size_t *ret_length);

typedef struct glb_limit_reached {
    const char *name;    /* "wall" */
    const char *unit;    /* "ms" */
    const char *message; /* what happened and what to do */
    uint64_t granted;
    uint64_t used;
} glb_limit_reached;

/* The limit that ended the run. Fails GLB_E_NOT_FOUND if none did. */
GLB_API int32_t glb_outcome_limit(const glb_outcome *outcome, glb_limit_reached *ret_limit,
                                  size_t size);

typedef struct glb_program_error {
    const char *name;      /* "ValueError"; "glovebox" if the run was lost */
    const char *value;     /* its message */
    const char *traceback; /* "" if there is none */
} glb_program_error;

/* The exception that ended the program, or why the run was lost. Fails GLB_E_NOT_FOUND if neither
 * is known. */
GLB_API int32_t glb_outcome_error(const glb_outcome *outcome, glb_program_error *ret_error,
                                  size_t size);

typedef struct glb_limit_hit {
    const char *name;
    uint64_t count;
} glb_limit_hit;

/* Limits that the run has reached, whether it ended by them or not. Fails GLB_E_NOT_FOUND past the
 * last. */
GLB_API int32_t glb_outcome_limit_hit(const glb_outcome *outcome, size_t index,
                                      glb_limit_hit *ret_hit, size_t size);

typedef struct glb_denial {
    const char *layer;   /* "network", "syscall", "artifact" … */
    const char *target;  /* what was tried */
    const char *message; /* why not, and what to do instead */
    uint64_t count;
} glb_denial;

/* Refused actions of the program. Fails GLB_E_NOT_FOUND past the last. */
GLB_API int32_t glb_outcome_denial(const glb_outcome *outcome, size_t index, glb_denial *ret_denial,
                                   size_t size);

/* Isolation mechanisms that were missing, because this machine or this user cannot have them:
 * "cgroup_memory" … Fails GLB_E_NOT_FOUND past the last. */
GLB_API int32_t glb_outcome_degraded(const glb_outcome *outcome, size_t index,
                                     const char **ret_wall);

typedef struct glb_artifact {
    const char *path; /* below /workspace; chosen by the program: check it before you use it */
    const char *sha256;
    const char *mime;
    uint64_t bytes;
} glb_artifact;

/* Files that the run made or changed. Fails GLB_E_NOT_FOUND past the last. */
GLB_API int32_t glb_outcome_artifact(const glb_outcome *outcome, size_t index,
                                     glb_artifact *ret_artifact, size_t size);

/* Fetches artifact `index` and writes it to a descriptor.
 *   Fails    GLB_E_NOT_FOUND  past the last, or the daemon has dropped it already
 *            GLB_E_SYSTEM     writing to the descriptor failed; the text says why */
GLB_API int32_t glb_artifact_write(glb_client *client, const glb_outcome *outcome, size_t index,
                                   int fd);

/* The id of the outcome's receipt, "" if it has none. */
GLB_API const char *glb_outcome_receipt(const glb_outcome *outcome);

/* Fetches the outcome's receipt, a signed envelope (docs/receipts.md), and writes it to a
 * descriptor.
 *
 *   Fails    GLB_E_NOT_FOUND  the outcome has none
 *            GLB_E_SYSTEM     writing to the descriptor failed; the text says why */
GLB_API int32_t glb_receipt_write(glb_client *client, const glb_outcome *outcome, int fd);

/* --- sessions: sandboxes that are kept between runs (docs/sessions.md) ---------------------------
 *
 * A session is named by its id, "ses_…", and ends with its daemon, also with a private one. JSON
 * texts are those of the REST interface. */

/* Frees a text that a call has given. NULL does nothing. */
GLB_API void glb_text_free(char *text);

typedef struct glb_session_options {
    const char *policy;
    const char *template_name;
    const glb_limit *limits;
    size_t limit_count;
    const char *const *environment; /* "NAME=value", NULL-ended */
    const char *const *metadata;    /* the same; glb_session_list() shows it */
    const char *folder;             /* of contexts that name none; NULL: /workspace */
    uint64_t idle_ms;               /* it ends after this time without use; 0: 10 minutes */
    uint64_t lifetime_ms;           /* it ends after this time in any case; 0: a day */
} glb_session_options;

/* Begins a session. Gives *ret_json, freed with glb_text_free(); its "id" names the session.
 *   Fails    GLB_E_BUSY         there are as many as policy or machine allow: end one
 *            GLB_E_UNAVAILABLE  an isolation mechanism or egress is missing; and as glb_run() */
GLB_API int32_t glb_session_new(glb_client *client, const glb_session_options *options,
                                size_t options_size, char **ret_json);

/* Lists sessions, the newest first, at most 1,000: {"sessions":[…],"next_cursor":TEXT|null}.
 *   state    NULL: those that are alive; "ended", "all"
 *   cursor   NULL, or the `next_cursor` of the page before */
GLB_API int32_t glb_session_list(glb_client *client, const char *state, const char *cursor,
                                 char **ret_json);

/* A session; if it has ended, when and why. Fails GLB_E_NOT_FOUND. */
GLB_API int32_t glb_session_get(glb_client *client, const char *session, char **ret_json);

/* Says that the session is in use: its idle time begins again. `ret_json` may be NULL.
 *   Fails    GLB_E_CONFLICT  it has ended */
GLB_API int32_t glb_session_touch(glb_client *client, const char *session, char **ret_json);

/* Ends a session and everything in it. `ret_json` may be NULL. */
GLB_API int32_t glb_session_kill(glb_client *client, const char *session, char **ret_json);

/* Freezes every program of a session, and stops its deadlines; with files_only 1 ends the programs
 * and keeps the files. `ret_json` may be NULL.
 *   Fails    GLB_E_CONFLICT  a cell runs or waits, or the session has ended */
GLB_API int32_t glb_session_pause(glb_client *client, const char *session, int32_t files_only,
                                  char **ret_json);

/* Resumes a session that is paused. `ret_json` may be NULL.
 *   Fails    GLB_E_CONFLICT  the session has ended */
GLB_API int32_t glb_session_resume(glb_client *client, const char *session, char **ret_json);

/* Begins a session with the files of this one and with the variables of one of its python contexts:
 * a sandbox of its own, which shares nothing with the first.
 *   context  NULL: python
 *   checkpoint     NULL: as it is now; else as at the checkpoint, and `context` is NULL
 *   Gives    *ret_json, the new session, as soon as the state to copy is fixed. Memory is copied
 *            afterwards: requests to the session, glb_session_get() too, wait for that. If it
 * fails, since it needs more than the session's limit, the session has ended, and says why. Fails
 * GLB_E_CONFLICT  a cell runs or waits, it is paused or ends, or cannot be copied GLB_E_BUSY every
 * sandbox is taken */
GLB_API int32_t glb_session_branch(glb_client *client, const char *session, const char *context,
                                   const char *checkpoint, char **ret_json);

/* Settings of a branch. Zero-fill it, set what you need, pass its size. */
typedef struct glb_branch_options {
    const char *context;
    const char *checkpoint;
    const char *const
        *metadata;        /* "NAME=value", NULL-ended, in place of the parent's; NULL: those */
    uint64_t idle_ms;     /* it ends after this time without use; 0: as its parent */
    uint64_t lifetime_ms; /* it ends after this time in any case; 0: a day */
} glb_branch_options;

/* As glb_session_branch(), with settings of the branch. `options` may be NULL.
 *   Fails    as glb_session_branch(), and GLB_E_LIMIT: more time than the policy allows */
GLB_API int32_t glb_session_branch_with(glb_client *client, const char *session,
                                        const glb_branch_options *options, size_t options_size,
                                        char **ret_json);

/* Keeps what a branch would get, for later, under a name (NULL: none). As glb_session_branch().
 * `ret_json` may be NULL. */
GLB_API int32_t glb_session_checkpoint(glb_client *client, const char *session, const char *name,
                                       const char *context, char **ret_json);

/* The checkpoints of a session, the newest first: {"checkpoints":[…]}. */
GLB_API int32_t glb_session_checkpoints(glb_client *client, const char *session, char **ret_json);

/* Removes a checkpoint; or restores the session to it, which ends every program that runs in it. A
 * checkpoint is named by its id or its name. `ret_json` may be NULL. Fails GLB_E_NOT_FOUND. */
GLB_API int32_t glb_session_checkpoint_remove(glb_client *client, const char *session,
                                              const char *checkpoint, char **ret_json);
GLB_API int32_t glb_session_rollback(glb_client *client, const char *session,
                                     const char *checkpoint, char **ret_json);

typedef struct glb_cell_options {
    const char *code;
    size_t code_length;      /* bytes; 0: code ends with NUL */
    const char *in;          /* a context's id, or a language: its first context; NULL: python */
    const glb_limit *limits; /* wall, cpu, output */
    size_t limit_count;
    glb_on_output *on_output;
    glb_on_event *on_event;
    void *context;           /* passed to both */
    const char *expectation; /* as in glb_run_options, without artifacts; NULL: none */
} glb_cell_options;

/* Runs a cell, whose context keeps its names. glb_cancel() interrupts it. As glb_run(), and
 *   Fails    GLB_E_CONFLICT  the session has ended: the text says why */
GLB_API int32_t glb_session_run(glb_client *client, const char *session,
                                const glb_cell_options *options, size_t options_size,
                                glb_outcome **ret_outcome);

/* Gets what has been typed, before it is sent, and may change or shorten it. Returns 0, or 1 to
 * leave the program, which goes on. */
typedef int32_t glb_on_input(void *context, char *data, size_t *length);

/* Gives the size of the terminal. Called from time to time, and after each signal of this thread.
 */
typedef void glb_on_size(void *context, uint16_t *rows, uint16_t *columns);

/* A program: `command`, `shell` or `process`, one of them. */
typedef struct glb_process_options {
    const char *const *command; /* NULL-ended list */
    const char *shell;          /* a line for bash */
    const char *process; /* the id, tag or pid of one that runs: its kept output comes first */
    const char *const *environment;
    const char *folder;
    const char *tag;      /* another name of it */
    uint64_t timeout_ms;  /* after this time its group is killed; 0: never */
    int32_t takes_input;  /* 1: bytes from input_fd are its input, which ends when input_fd ends */
    int32_t input_fd;     /* borrowed for the call */
    int32_t has_terminal; /* 1: it has a terminal instead of pipes */
    int32_t reserved;
    glb_on_size *on_size;
    glb_on_input *on_input;
    glb_on_output *on_output; /* a terminal has only GLB_STDOUT; 1 leaves the program */
    glb_on_event *on_event;   /* "started", "lost" (output that was not read in time), "paused",
                                 "resumed", "end" */
    void *context;            /* passed to all of them */
} glb_process_options;

/* Starts a program in a session, or joins one, and waits for its end. glb_cancel() sends it SIGINT;
 * a second call leaves the program, which goes on.
 *
 *   Gives    *ret_json, freed with glb_text_free(): the process, with "exit_code" and "signal"
 *            unless a callback has left it. `ret_json` may be NULL.
 *   Fails    GLB_E_NOT_FOUND       no such session or process
 *            GLB_E_CONFLICT        the session has ended
 *            GLB_E_NO_PROGRAM      no such program in the sandbox
 *            GLB_E_NOT_EXECUTABLE  the file exists, but cannot be executed
 *            GLB_E_CANCELLED       glb_cancel() for the second time */
GLB_API int32_t glb_session_exec(glb_client *client, const char *session,
                                 const glb_process_options *options, size_t options_size,
                                 char **ret_json);

/* Lists the programs of a session: {"processes":[…]}; with has_ended 1, also those that have ended
 * in the last minute. */
GLB_API int32_t glb_session_processes(glb_client *client, const char *session, int32_t has_ended,
                                      char **ret_json);

/* Writes a file of the session to a descriptor; with is_folder 1 a folder, as a tar that may be
 * hostile. A path begins with "/", or lies below /workspace. */
GLB_API int32_t glb_session_read(glb_client *client, const char *session, const char *path,
                                 int32_t is_folder, int fd);

/* Writes the bytes of a descriptor to a file, complete or not at all, with the permissions of the
 * descriptor's file if that is a regular one; with is_folder 1 unpacks a tar into a folder. */
GLB_API int32_t glb_session_write(glb_client *client, const char *session, const char *path,
                                  int32_t is_folder, int fd);

/* Lists a folder, `depth` levels deep (0: 1). `path` NULL: /workspace. */
GLB_API int32_t glb_session_files(glb_client *client, const char *session, const char *path,
                                  uint32_t depth, char **ret_json);

#ifdef __cplusplus
}
#endif
