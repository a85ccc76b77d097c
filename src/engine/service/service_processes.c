/* service_processes.c - see service_processes.h. */
#include "engine/service/service_processes.h"

#include "base/table.h"
#include "engine/process/processes.h"
#include "engine/service/service_sessions.h"
#include "engine/session/contexts.h"
#include "engine/session/session_registry.h"
#include "json/writer.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

_Static_assert((int) PROCESS_FEED_MAX == (int) PROCESS_INPUT_MAX, "what a program takes");
_Static_assert((int) PROCESS_SIZE_MAX == (int) PROCESS_TERMINAL_MAX, "what a terminal takes");

/* --- start a process -------------------------------------------------------------------------- */

static int start_new(struct service *service, const struct caller *caller,
                     const struct process_order *order, struct process **ret_process, error *err)
{
    char id[PROCESS_ID_SIZE];
    struct session *session = NULL;
    struct process_request request = { 0 };
    struct variables variables = { 0 };
    int done = service_session_enter(service, caller, order->session, &session, err);
    if (done == 0)
        done = process_request_read(order->request, &request, err);
    if (done == 0)
        done = session_check_running(session, err);
    if (done == 0)
        done = session_check_approval(session, caller->account, service->approvals, err);
    if (done == 0)
        done = run_plan_environment(session_plan(session), session_place(session), NULL, &variables,
                                    err);
    request.account = caller->account;
    request.variables = &variables.text;
    process_next_id(service->processes, id);
    if (done == 0)
        done = service_order_keep(service, caller, order->order, id, err);
    if (done == 0) {
        done = process_start(service->processes, session, &request, ret_process, err);
        if (done < 0)
            service_order_drop(service, order->order);
    }
    process_request_done(&request);
    bytes_done(&variables.text);
    return done == 0 ? 0 : -1;
}

int service_process_start(struct service *service, const struct caller *caller,
                          const struct process_order *order, struct process **ret_process,
                          error *err)
{
    struct session *session = NULL;
    struct order *once = order->order;
    if (service_session_look(service, caller, order->session, &session, err) < 0)
        return -1;
    int found = service_order_find(service, caller, once, err);
    if (found != ORDER_KNOWN)
        return found < 0 ? -1 : start_new(service, caller, order, ret_process, err);
    if (once->is_of_earlier) /* its session has ended; the id may be another's now */
        return order_fail_forgotten(once, err);
    struct process *process = process_find(service->processes, session, once->id);
    if (!process)
        return order_fail_forgotten(once, err);
    once->is_replayed = true;
    *ret_process = process;
    return 0;
}

int service_process_look(const struct process *process, error *err)
{
    if (process->state == PROCESS_STARTING)
        return PROCESS_LATER;
    if (process->pid != 0)
        return PROCESS_HAS_STARTED;
    *err = process->failure;
    return -1;
}

/* --- an existing process ---------------------------------------------------------------------- */

int service_process_find(const struct service *service, const struct session *session,
                         const char *name, struct process **ret_process, error *err)
{
    struct process *process = process_find(service->processes, session, name);
    if (!process)
        return fail(err, ERR_NOT_FOUND, "no process of this session is called '%.60s'", name);
    *ret_process = process;
    return 0;
}

const struct process *service_process_next(const struct service *service,
                                           const struct session *session,
                                           const struct process *last, bool all)
{
    const struct process *process = last ? last->next : service->processes->first;
    while (process && (strcmp(process->session_id, session_id(session)) != 0 ||
                       (process->state != PROCESS_RUNNING && !all)))
        process = process->next;
    return process;
}

int service_process_feed(struct process *process, const struct bytes *data, bool is_last,
                         error *err)
{
    if (is_last && process->has_terminal)
        return fail(err, ERR_BAD_REQUEST, "a terminal cannot be closed; send it Ctrl-D (\\u0004)");
    if (data->size > 0 && process_feed(process, data->data, data->size, err) < 0)
        return -1;
    if (is_last)
        process_end_input(process);
    return 0;
}

static int read_signal(const char *name, unsigned *ret_number, error *err)
{
    static const struct {
        const char *name;
        unsigned number;
    } rows[] = {
        { "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT },   { "KILL", SIGKILL },
        { "USR1", SIGUSR1 }, { "USR2", SIGUSR2 }, { "TERM", SIGTERM },   { "CONT", SIGCONT },
        { "STOP", SIGSTOP }, { "TSTP", SIGTSTP }, { "WINCH", SIGWINCH },
    };
    const char *word = strncmp(name, "SIG", 3) == 0 ? name + 3 : name;
    for_each(row, rows)
        if (strcmp(row->name, word) == 0) {
            *ret_number = row->number;
            return 0;
        }
    char *end;
    unsigned long number = strtoul(name, &end, 10);
    if (*name < '1' || *name > '9' || *end || number > 64)
        return fail(err, ERR_BAD_REQUEST, "'signal' must be a name (SIGTERM) or a number up to 64");
    *ret_number = (unsigned) number;
    return 0;
}

int service_process_signal(struct process *process, const char *signal, bool whole_group,
                           error *err)
{
    unsigned number = 0;
    return read_signal(signal, &number, err) < 0
               ? -1
               : process_signal(process, number, whole_group, err);
}

int service_process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err)
{
    return process_resize(process, rows, columns, err);
}

static void write_fields(const struct process *process, struct bytes *out)
{
    static const char *const states[] = { "starting", "running", "ended" };
    json_open(out, '{');
    json_string_field(out, "id", process->id);
    json_count_field(out, "pid", process->pid);
    json_string_field(out, "tag", process->tag);
    json_string_field(out, "state", states[process->state]);
    json_key(out, "command");
    const char *config = json_object_to_json_string_ext(process->config, JSON_C_TO_STRING_PLAIN);
    json_raw(out, config, strlen(config));
    json_flag_field(out, "terminal", process->has_terminal);
    json_flag_field(out, "stdin", process->has_stdin && !process->input_ends);
    json_moment_field(out, "started_at", process->started_ms);
    json_count_field(out, "offset", process->first);
    json_count_field(out, "end_offset", process_log_end(process));
    bool has_ended = process->state == PROCESS_ENDED;
    json_key(out, "exit_code");
    if (has_ended && process->signal == 0)
        json_number(out, process->exit_code);
    else
        json_null(out);
    json_key(out, "signal");
    if (has_ended && process->signal != 0)
        json_number(out, process->signal);
    else
        json_null(out);
    json_flag_field(out, "timed_out", process->timed_out);
    json_string_field(out, "message",
                      process->failure.code != ERR_NONE ? process->failure.text : NULL);
    json_string_field(out, "receipt", process_receipt(process));
}

void service_process_write(const struct process *process, struct bytes *out)
{
    write_fields(process, out);
    json_close(out, '}');
}

/* --- events ----------------------------------------------------------------------------------- */

struct process_watch {
    struct process *process;
    struct process_reader reader;
    bool was_started, knows_of_pause, is_over;
};

struct process_watch *service_process_watch(struct process *process, uint64_t offset,
                                            const struct waker *waker, error *err)
{
    struct process_watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        (void) fail(err, ERR_SYSTEM, "no memory to read from a process");
        return NULL;
    }
    watch->process = process;
    watch->reader =
        (struct process_reader){ .woken = waker->woken, .context = waker->context, .at = offset };
    process_join(process, &watch->reader);
    return watch;
}

void process_watch_close(struct process_watch *watch)
{
    if (watch)
        process_leave(watch->process, &watch->reader);
    free(watch);
}

const struct process *process_watch_process(const struct process_watch *watch)
{
    return watch->process;
}

/* A pipe may cut a character in two: the stream is put together before it becomes text. */
void process_watch_write(const struct process_watch *watch, struct bytes *out)
{
    auto_bytes printed = { 0 }, complained = { 0 };
    struct process *process = watch->process;
    struct process_reader reader = watch->reader; /* a copy of the position: it delays nothing */
    struct process_record record;
    reader.at = 0;
    uint64_t lost = process_skip_lost(process, &reader);
    while (process_read(process, &reader, &record))
        bytes_add(record.stream == 2 ? &complained : &printed, record.bytes, record.size);
    write_fields(process, out);
    json_key(out, "stdout");
    json_text(out, printed.data ?: "", printed.size);
    json_key(out, "stderr");
    json_text(out, complained.data ?: "", complained.size);
    json_count_field(out, "lost_bytes", lost);
    json_close(out, '}');
    out->failed = out->failed || printed.failed || complained.failed;
}

static int tell(const struct process_watch *watch, enum process_event_kind kind,
                struct process_event *ret_event)
{
    *ret_event = (struct process_event){ .kind = kind, .offset = watch->reader.at };
    return 1;
}

static int tell_output(struct process_watch *watch, struct process_event *ret_event)
{
    struct process_record record;
    uint64_t lost = process_skip_lost(watch->process, &watch->reader);
    if (lost > 0) {
        (void) tell(watch, PROCESS_EVENT_LOST, ret_event);
        ret_event->lost = lost;
        return 1;
    }
    if (!process_read(watch->process, &watch->reader, &record))
        return FLOW_LATER;
    (void) tell(watch, record.stream == 2 ? PROCESS_EVENT_STDERR : PROCESS_EVENT_STDOUT, ret_event);
    ret_event->bytes = record.bytes;
    ret_event->size = record.size;
    return 1;
}

int process_watch_next(struct process_watch *watch, struct process_event *ret_event)
{
    const struct process *process = watch->process;
    if (watch->is_over)
        return FLOW_END;
    if (!watch->was_started && process->state != PROCESS_STARTING) {
        watch->was_started = true;
        return tell(watch, PROCESS_EVENT_STARTED, ret_event);
    }
    bool is_paused = process->session && session_state(process->session) == SESSION_PAUSED;
    if (is_paused != watch->knows_of_pause) {
        watch->knows_of_pause = is_paused;
        return tell(watch, is_paused ? PROCESS_EVENT_PAUSED : PROCESS_EVENT_RESUMED, ret_event);
    }
    if (tell_output(watch, ret_event) > 0)
        return 1;
    if (process->state != PROCESS_ENDED)
        return FLOW_LATER;
    watch->is_over = true;
    return tell(watch, PROCESS_EVENT_END, ret_event);
}
