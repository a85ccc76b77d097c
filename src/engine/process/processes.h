/* processes.h - programs that clients start in a session, with pipes or a terminal. A client finds
 * one by id, reads it from any offset that is kept, writes to it, signals and resizes it.
 *
 *  starting --> running --> ended      (kept ENDED_MS longer, for clients that reconnect)
 *
 * The last OUTPUT_KEPT bytes of output are kept. If there is a reader, the program waits for it and
 * no output is lost; a reader that takes nothing for STALL_MS does not count. Without a reader the
 * program never waits: older output is dropped, and a later reader learns how much. */
#pragma once

#include "base/bytes.h"
#include "base/clock.h"
#include "engine/schedule/accounts.h"
#include "engine/session/route_usage.h"
#include "engine/session/session.h"

#include <json.h>
#include <stdbool.h>
#include <uv.h>

enum {
    PROCESS_ID_SIZE = 24,
    PROCESSES_MAX = 48, /* in one session, including ended ones */
    PROCESS_OUTPUT_KEPT = 1 << 20,
    PROCESS_INPUT_MAX = 1 << 20, /* bytes that the program has not read yet */
    PROCESS_STALL_MS = 10000,
    PROCESS_ENDED_MS = 60000,
    PROCESS_TIMEOUT_MAX_MS = 24 * 3600 * 1000,
    PROCESS_TAG_MAX = 128,
    PROCESS_TERMINAL_MAX = 1000, /* rows, columns */
};

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_ENDED };

/* A reader of the output, in the caller's storage. */
struct process_reader {
    void (*woken)(void *context);
    void *context;
    uint64_t at; /* offset of the next record */
    deadline stalls;
    struct process_reader *next;
};

struct process {
    char id[PROCESS_ID_SIZE];
    struct processes *processes;
    struct session *session; /* NULL after its end, or that of the session */
    char session_id[40];
    struct session_operation operation;
    enum process_state state;
    struct json_object *config; /* as requested, without the environment */
    char *tag;
    bool has_terminal, has_stdin;
    uint32_t pid; /* as seen inside */
    int32_t exit_code, signal;
    bool timed_out;
    error failure; /* why it did not start, or that its session has ended */
    int64_t started_ms, ended_ms;
    struct process_proof *proof; /* for its receipt: process_receipt.c */
    struct route_usage route;
    bool is_ending; /* it has exited; records of its connections are still to come */
    deadline told_by;

    struct bytes log; /* records: stream, size, bytes */
    size_t log_at;    /* where the oldest kept record begins */
    uint64_t first;   /* its offset */
    uint64_t debt;    /* bytes for which init has no credit yet */

    struct bytes input; /* not yet sent to init */
    size_t window;      /* bytes that init accepts now */
    bool input_ends, input_has_ended;

    struct process_reader *readers; /* it is not freed while there are any */
    deadline dies;
    uv_timer_t timer;
    bool is_closing, is_closed;
    struct process *next;
};

struct processes {
    uv_loop_t *loop;
    struct process *first;
    uint64_t last_id;
};

/* Frees all processes: their sessions have ended, and the loop will. */
void processes_close(struct processes *processes);

/* A client's request, a ProcessRequest of docs/api.md. */
struct process_request {
    struct account *account;     /* of the caller */
    struct json_object *command; /* an array of texts */
    struct json_object *env;     /* an object of texts */
    struct bytes shell;          /* in place of a command: a line for bash */
    struct bytes folder, tag;
    bool has_stdin, has_terminal;
    uint64_t rows, columns;
    uint64_t timeout_ms;           /* 0: none */
    const struct bytes *variables; /* of the session: NAME=value, each ended by NUL */
};

/* `json` is borrowed while the request exists; NULL: an empty request. Call process_request_done()
 * even after a failure. Fails  ERR_BAD_REQUEST. */
int process_request_read(struct json_object *json, struct process_request *ret_request, error *err);
void process_request_done(struct process_request *request);

/* The id that the next process will have. */
void process_next_id(const struct processes *processes, char ret_id[PROCESS_ID_SIZE]);

/* Starts a process. Gives *ret_process in the state STARTING; its readers are woken when it
 * changes. */
int process_start(struct processes *processes, struct session *session,
                  const struct process_request *request, struct process **ret_process, error *err);

/* Finds a process of a session by id, by "pid" as a number, or by tag. NULL: none. */
struct process *process_find(const struct processes *processes, const struct session *session,
                             const char *name);

/* How many processes of the session run or are starting. */
unsigned processes_running(const struct processes *processes, const struct session *session);

int process_feed(struct process *process, const void *bytes, size_t size, error *err);
void process_end_input(struct process *process);
int process_signal(struct process *process, unsigned number, bool whole_group, error *err);
int process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err);

/* Reads from `at`, or from the oldest output that is kept. */
void process_join(struct process *process, struct process_reader *reader);
void process_leave(struct process *process, struct process_reader *reader);

struct process_record {
    unsigned stream; /* 1 stdout, 2 stderr; a terminal: 1 */
    const char *bytes;
    size_t size;
    uint64_t next; /* offset of the next record */
};
/* Moves the reader to the oldest output that is kept. Returns how many bytes it has missed. */
uint64_t process_skip_lost(const struct process *process, struct process_reader *reader);
/* To be called after process_skip_lost(). False: no new output. The bytes are borrowed until the
 * next call. */
bool process_read(struct process *process, struct process_reader *reader,
                  struct process_record *record);

uint64_t process_log_end(const struct process *process); /* the offset after the last byte */

/* process_command.c: adds the payload of the START frame to *out. Fails ERR_BAD_REQUEST,
 * ERR_TOO_LARGE. */
int process_write_start(const struct process_request *request, struct bytes *out, error *err);

/* process_receipt.c: writes the beginning to the log before the process starts, and the receipt
 * before its end is reported. Fails  it must not start, or no more of it may be sent. */
int process_proof_begin(struct process *process, struct account *account, const struct bytes *order,
                        error *err);
void process_proof_fed(struct process *process, const void *bytes, size_t size);
void process_proof_printed(struct process *process, unsigned stream, size_t size);
int process_proof_end(struct process *process, struct session *session, error *err);
void process_proof_free(struct process *process);
const char *process_receipt(const struct process *process); /* the receipt's id; NULL: none yet */
