/* processes.h - programs that clients start in a session, with pipes or a terminal: found again by
 * id, read from any offset that is still kept, fed, signalled, resized, ended at a deadline.
 *
 *  starting --> running --> ended      (kept ENDED_MS longer, so that a client that reconnects
 * learns how)
 *
 * Output: the last OUTPUT_KEPT bytes are kept. With a reader, the program is held up rather
 * than that anything is lost; a reader that takes nothing for STALL_MS does not count. Without a
 * reader the program is never held up: what is older than the last OUTPUT_KEPT bytes is thrown
 * away, and a later reader learns how much. */
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
    PROCESSES_MAX = 48, /* of one session, ended ones too */
    PROCESS_OUTPUT_KEPT = 1 << 20,
    PROCESS_INPUT_MAX = 1 << 20, /* bytes that wait for the program to read */
    PROCESS_STALL_MS = 10000,
    PROCESS_ENDED_MS = 60000,
    PROCESS_TIMEOUT_MAX_MS = 24 * 3600 * 1000,
    PROCESS_TAG_MAX = 128,
    PROCESS_TERMINAL_MAX = 1000, /* rows, columns */
};

enum process_state { PROCESS_STARTING, PROCESS_RUNNING, PROCESS_ENDED };

/* A reader of the output; lies in the caller's storage. */
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
    struct session *session; /* NULL once it or the session has ended */
    char session_id[40];
    struct session_operation operation;
    enum process_state state;
    struct json_object *config; /* as it was asked for, without the environment */
    char *tag;
    bool has_terminal, has_stdin;
    uint32_t pid; /* as seen inside */
    int32_t exit_code, signal;
    bool timed_out;
    error failure; /* it could not be started, or its session has ended */
    int64_t started_ms, ended_ms;
    struct process_proof *proof; /* what its receipt will say: process_receipt.c */
    struct route_usage route;
    bool is_ending; /* it has exited; what has passed on the way out is still being told */
    deadline told_by;

    struct bytes log; /* records: stream, size, bytes */
    size_t log_at;    /* of the oldest record that is kept */
    uint64_t first;   /* its offset */
    uint64_t debt;    /* output that init has not been given credit for */

    struct bytes input; /* waits for room inside */
    size_t window;      /* bytes that init takes now */
    bool input_ends, input_has_ended;

    struct process_reader *readers; /* while there are any it is not forgotten */
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

/* Forgets all of them: their sessions have ended, and the loop is about to. */
void processes_close(struct processes *processes);

/* What a client asks for, as a ProcessRequest of docs/api.md. */
struct process_request {
    struct account *account;     /* of the caller */
    struct json_object *command; /* an array of texts */
    struct json_object *env;     /* an object of texts */
    struct bytes shell;          /* instead of a command: a line for bash */
    struct bytes folder, tag;
    bool has_stdin, has_terminal;
    uint64_t rows, columns;
    uint64_t timeout_ms;           /* 0: none */
    const struct bytes *variables; /* of the session: NAME=value, each ended by NUL */
};

/* `json` is borrowed for as long as the request; NULL says nothing. Call process_request_done() in
 * any case. Fails  ERR_BAD_REQUEST. */
int process_request_read(struct json_object *json, struct process_request *ret_request, error *err);
void process_request_done(struct process_request *request);

/* The id that the next process will have. */
void process_next_id(const struct processes *processes, char ret_id[PROCESS_ID_SIZE]);

/* Starts one. Gives *ret_process, which is STARTING: its readers are woken when that changes. */
int process_start(struct processes *processes, struct session *session,
                  const struct process_request *request, struct process **ret_process, error *err);

/* Of one session, by id, by "pid" as a number, or by tag. NULL if there is none. */
struct process *process_find(const struct processes *processes, const struct session *session,
                             const char *name);

/* How many programs run in it, or begin to. */
unsigned processes_running(const struct processes *processes, const struct session *session);

int process_feed(struct process *process, const void *bytes, size_t size, error *err);
void process_end_input(struct process *process);
int process_signal(struct process *process, unsigned number, bool whole_group, error *err);
int process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err);

/* Reads from `at` on, or from what is still kept. */
void process_join(struct process *process, struct process_reader *reader);
void process_leave(struct process *process, struct process_reader *reader);

struct process_record {
    unsigned stream; /* 1 stdout, 2 stderr, of a terminal 1 */
    const char *bytes;
    size_t size;
    uint64_t next; /* offset after it */
};
/* Goes on with what is still kept. Returns how many bytes the reader has missed. */
uint64_t process_skip_lost(const struct process *process, struct process_reader *reader);
/* After process_skip_lost(). False: nothing new now. The bytes are borrowed until the next call. */
bool process_read(struct process *process, struct process_reader *reader,
                  struct process_record *record);

uint64_t process_log_end(const struct process *process); /* the offset behind all of it */

/* process_command.c: the payload of the order that starts it, added to *out.
 * Fails ERR_BAD_REQUEST, ERR_TOO_LARGE. */
int process_write_start(const struct process_request *request, struct bytes *out, error *err);

/* process_receipt.c: its beginning is in the log before it is started, its receipt before its end
 * is reported. Fails  then it must not begin, or nothing more of it may be handed out. */
int process_proof_begin(struct process *process, struct account *account, const struct bytes *order,
                        error *err);
void process_proof_fed(struct process *process, const void *bytes, size_t size);
void process_proof_printed(struct process *process, unsigned stream, size_t size);
int process_proof_end(struct process *process, struct session *session, error *err);
void process_proof_free(struct process *process);
const char *process_receipt(const struct process *process); /* its id; NULL: none yet */
