/* processes.c - see processes.h. Each reader has a position; output that all readers have read, or
 * that has no reader, is given back to init as credit. */
#include "engine/process/processes_internal.h"
#include "engine/sandbox/agent_error.h"

#include "base/clock.h"
#include "base/list.h"
#include "engine/session/session_registry.h"
#include "policy/policy_permits.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TELL_MS = 2000,             /* for the last records of glovebox-egress */
    ENDED_BYTES_MAX = 64 << 20, /* of output of ended processes, for all sessions */
};

static void on_timer(uv_timer_t *timer);

static void process_tell(struct process *process)
{
    for (struct process_reader *reader = process->readers, *next; reader; reader = next) {
        next = reader->next;
        reader->woken(reader->context);
    }
}

/* --- life ------------------------------------------------------------------------------------- */

static void process_free(struct process *process)
{
    json_object_put(process->config);
    process_proof_free(process);
    free(process->tag);
    bytes_done(&process->log);
    bytes_done(&process->input);
    free(process);
}

void process_free_if_closed(struct process *process)
{
    if (process->is_closed && !process->readers)
        process_free(process);
}

static void on_closed(uv_handle_t *handle)
{
    struct process *process = handle->data;
    process->is_closed = true;
    process_free_if_closed(process);
}

static void forget(struct process *process)
{
    (void) list_remove(process->processes->first, process, next);
    process->is_closing = true;
    uv_close((uv_handle_t *) &process->timer, on_closed);
}

void processes_close(struct processes *processes)
{
    while (processes->first)
        forget(processes->first);
}

void process_set_timer(struct process *process)
{
    uint64_t left = UINT64_MAX;
    if (process->is_closing)
        return;
    if (process->dies.at_ms != 0)
        left = (uint64_t) deadline_left_ms(process->dies);
    if (process->is_ending && process->state != PROCESS_ENDED)
        left = (uint64_t) deadline_left_ms(process->told_by);
    if (process->readers && process->debt > 0 && left > PROCESS_STALL_MS)
        left = PROCESS_STALL_MS / 4; /* a reader may stall */
    uv_update_time(process->processes->loop);
    if (left == UINT64_MAX)
        (void) uv_timer_stop(&process->timer);
    else
        (void) uv_timer_start(&process->timer, on_timer, left + 1, 0);
}

/* Without a receipt no end is reported, and no more output is handed out. */
static void prove(struct process *process, struct session *session)
{
    error err;
    if (process_proof_end(process, session, &err) == 0)
        return;
    process->failure = err;
    (void) under(&process->failure, "no more output of this process is handed out");
    process->exit_code = -1;
    process->signal = SIGKILL;
    process->first = process_log_end(process);
    process->log.size = process->log_at = 0;
}

static void become_ended(struct process *process, struct session *session)
{
    process->state = PROCESS_ENDED;
    process->ended_ms = wall_clock_ms();
    prove(process, session);
    if (process->session) {
        session_done(process->session, &process->operation);
        for (const struct process_reader *reader = process->readers; reader; reader = reader->next)
            session_let_go(process->session);
    }
    process->session = NULL;
    process->dies = deadline_in(PROCESS_ENDED_MS);
    process_set_timer(process);
    process_tell(process);
}

/* At its deadline: kills its group. Some time after its end: frees it. */
static void on_timer(uv_timer_t *timer)
{
    struct process *process = timer->data;
    if (process->session && !session_is_running(process->session))
        return; /* paused: on_resumed() continues */
    if (process->is_ending && process->session && deadline_has_passed(process->told_by)) {
        become_ended(process, process->session);
        return;
    }
    process_grant_credit(process);
    if (process->dies.at_ms != 0 && deadline_has_passed(process->dies)) {
        if (process->state == PROCESS_ENDED && !process->readers) {
            forget(process);
            return;
        }
        error unheard;
        process->dies =
            process->state == PROCESS_ENDED ? deadline_in(PROCESS_ENDED_MS) : (deadline){ 0 };
        if (process->state != PROCESS_ENDED) {
            process->timed_out = true;
            (void) process_signal(process, SIGKILL, true, &unheard);
        }
    }
    process_set_timer(process);
}

static void on_paused(void *context)
{
    process_tell(context);
}

static void on_resumed(void *context, int64_t paused_ms)
{
    struct process *process = context;
    if (process->dies.at_ms != 0)
        process->dies.at_ms += paused_ms;
    process_set_timer(process);
    process_tell(process);
}

/* Whether the program is missing or cannot be executed, as shells report it. For anything else,
 * such as a missing folder, the request is to blame. */
static enum error_code why_not_started(const unsigned char *payload, enum error_code code)
{
    struct agent_done done;
    memcpy(&done, payload, sizeof done);
    if (done.is_of_the_program)
        return done.os == ENOENT || done.os == ENOTDIR ? ERR_NO_PROGRAM : ERR_NOT_EXECUTABLE;
    return code == ERR_NOT_FOUND || code == ERR_POLICY ? ERR_BAD_REQUEST : code;
}

static void on_way_told(void *context)
{
    struct process *process = context;
    if (process->session && process->state != PROCESS_ENDED)
        become_ended(process, process->session);
}

/* glovebox-egress sends its last records before the end is reported. */
static void end(struct process *process)
{
    process->is_ending = true;
    process->told_by = deadline_in(TELL_MS);
    if (!route_usage_ask(process->session, &process->route)) {
        on_way_told(process);
        return;
    }
    process_set_timer(process);
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct process *process = context;
    struct agent_started started;
    struct agent_exited exited;
    struct agent_amount taken;
    switch (frame->kind) {
    case AGENT_STARTED:
        memcpy(&started, payload, sizeof started);
        process->pid = started.pid;
        process->state = PROCESS_RUNNING;
        process_feed_on(process);
        break;
    case AGENT_OUTPUT:
        process_add_output(process, frame->stream, payload, frame->size);
        process_proof_printed(process, frame->stream, frame->size);
        process->debt += frame->size;
        if (process->log.failed)
            return fail(err, ERR_SYSTEM, "no memory for the output of a process");
        process_grant_credit(process);
        process_set_timer(process);
        break;
    case AGENT_CREDIT:
        memcpy(&taken, payload, sizeof taken);
        if (taken.bytes > AGENT_WINDOW - process->window)
            return fail(err, ERR_PROTOCOL, "glovebox-init took more input than it was given");
        process->window += (size_t) taken.bytes;
        process_feed_on(process);
        return 0;
    case AGENT_EXITED:
        memcpy(&exited, payload, sizeof exited);
        process->exit_code = exited.exit_code;
        process->signal = exited.signal;
        if (!process->is_ending)
            end(process);
        return 0;
    case AGENT_DONE: /* for a signal or a resize, or if it could not start */
        if (process->state != PROCESS_STARTING)
            return 0;
        if (error_of_agent(frame, payload, &process->failure) == 0)
            return fail(err, ERR_PROTOCOL, "glovebox-init did not report the start of a process");
        process->failure.code = why_not_started(payload, process->failure.code);
        become_ended(process, process->session);
        return 0;
    default:
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for a process",
                    frame->kind);
    }
    process_tell(process);
    return 0;
}

static void on_session_ended(void *context, const error *why)
{
    struct process *process = context;
    struct session *session = process->session;
    process->session = NULL;
    if (!process->is_ending) {
        process->failure = *why;
        process->exit_code = -1;
        process->signal = SIGKILL;
    }
    become_ended(process, session);
}

/* --- start a process -------------------------------------------------------------------------- */

void process_next_id(const struct processes *processes, char ret_id[PROCESS_ID_SIZE])
{
    (void) snprintf(ret_id, PROCESS_ID_SIZE, "prc_%" PRIu64, processes->last_id + 1);
}

static struct process *process_new(struct processes *processes, struct session *session,
                                   const struct process_request *request)
{
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process_next_id(processes, process->id);
    processes->last_id++;
    (void) snprintf(process->session_id, sizeof process->session_id, "%s", session_id(session));
    process->processes = processes;
    process->session = session;
    process->has_terminal = request->has_terminal;
    process->has_stdin = request->has_stdin || request->has_terminal;
    process->window = AGENT_WINDOW;
    process->started_ms = wall_clock_ms();
    if (request->tag.size > 0)
        process->tag = strndup(request->tag.data, request->tag.size);
    process->config =
        request->shell.size > 0
            ? json_object_new_string_len(request->shell.data, (int) request->shell.size)
            : json_object_get(request->command);
    (void) uv_timer_init(processes->loop, &process->timer);
    process->timer.data = process;
    process->next = processes->first;
    processes->first = process;
    return process;
}

/* Makes room for a new process: frees the oldest ended one of its session if there are
 * PROCESSES_MAX, and the oldest of all sessions while their output is too much. */
static void make_room(const struct processes *processes, const struct session *session)
{
    unsigned count = 0;
    size_t bytes = 0;
    for (struct process *process = processes->first, *next; process; process = next) {
        next = process->next; /* the list goes from new to old */
        count += strcmp(process->session_id, session_id(session)) == 0;
        if (process->state != PROCESS_ENDED)
            continue;
        bool is_last =
            count >= PROCESSES_MAX && strcmp(process->session_id, session_id(session)) == 0;
        bytes += process->log.size;
        if (!process->readers && (is_last || bytes > ENDED_BYTES_MAX))
            forget(process);
    }
}

unsigned processes_running(const struct processes *processes, const struct session *session)
{
    unsigned count = 0;
    for (const struct process *process = processes->first; process; process = process->next)
        count += process->state != PROCESS_ENDED && process->session == session;
    return count;
}

static int check_count(const struct processes *processes, const struct session *session, error *err)
{
    unsigned count = processes_running(processes, session);
    if (count >= PROCESSES_MAX)
        return fail(err, ERR_BUSY, "%u processes run in this session; end some", count);
    return 0;
}

int process_start(struct processes *processes, struct session *session,
                  const struct process_request *request, struct process **ret_process, error *err)
{
    auto_bytes wanted = { 0 };
    if (policy_permits_programs(session_plan(session)->policy, err) < 0 ||
        account_check_log(session_runs(session)->accounts, request->account, err) < 0 ||
        process_write_start(request, &wanted, err) < 0 || check_count(processes, session, err) < 0)
        return -1;
    make_room(processes, session);
    struct process *process = process_new(processes, session, request);
    if (!process)
        return fail(err, ERR_SYSTEM, "no memory for a process");
    process->operation = (struct session_operation){ .context = process,
                                                     .frame = on_frame,
                                                     .paused = on_paused,
                                                     .resumed = on_resumed,
                                                     .ended = on_session_ended };
    process->route.context = process;
    process->route.told = on_way_told;
    if (session_begin(session, &process->operation, err) < 0 ||
        process_proof_begin(process, request->account, &wanted, err) < 0) {
        session_done(session, &process->operation);
        process->session = NULL;
        forget(process);
        return -1;
    }
    session_count_process(session);
    if (request->timeout_ms > 0)
        process->dies = deadline_in((int64_t) request->timeout_ms);
    session_order(process->session, &process->operation, AGENT_START, wanted.data, wanted.size);
    process_set_timer(process);
    *ret_process = process;
    return 0;
}

struct process *process_find(const struct processes *processes, const struct session *session,
                             const char *name)
{
    char *end;
    unsigned long pid = strtoul(name, &end, 10);
    bool is_pid = *name >= '0' && *name <= '9' && !*end;
    struct process *found = NULL;
    for (struct process *process = processes->first; process; process = process->next) {
        if (strcmp(process->session_id, session_id(session)) != 0)
            continue;
        if (strcmp(process->id, name) == 0)
            return process; /* an id wins over the tag of another */
        if (!found &&
            ((is_pid && process->pid == pid) || (process->tag && strcmp(process->tag, name) == 0)))
            found = process;
    }
    return found;
}
