/* process_orders.c - what a client does with a process that runs, and how it is described. */
#include "engine/process/processes_internal.h"

#include "json/writer.h"

#include <string.h>

void process_feed_on(struct process *process)
{
    while (process->session && process->input.size > 0 && process->window > 0) {
        size_t part = process->input.size < process->window ? process->input.size : process->window;
        if (part > AGENT_PAYLOAD_MAX)
            part = AGENT_PAYLOAD_MAX;
        process->window -= part;
        process_order(process, AGENT_DATA, process->input.data, part);
        bytes_drop(&process->input, part);
    }
    if (process->input.size == 0 && process->input_ends && !process->input_has_ended) {
        process->input_has_ended = true;
        process_order(process, AGENT_END, NULL, 0);
    }
}

static int check_runs(const struct process *process, error *err)
{
    if (process->session)
        return 0;
    return fail(err, ERR_CONFLICT, "process %s has ended", process->id);
}

int process_feed(struct process *process, const void *bytes, size_t size, error *err)
{
    if (check_runs(process, err) < 0)
        return -1;
    if (!process->has_stdin || process->input_ends)
        return fail(err, ERR_CONFLICT, "the input of process %s is not open", process->id);
    if (process->input.size + size > PROCESS_INPUT_MAX)
        return fail(err, ERR_BUSY, "process %s has not read the last %zu bytes yet; try again",
                    process->id, process->input.size);
    bytes_add(&process->input, bytes, size);
    if (process->input.failed)
        return fail(err, ERR_SYSTEM, "no memory for input");
    process_proof_fed(process, bytes, size);
    session_touch(process->session);
    if (process->state == PROCESS_RUNNING)
        process_feed_on(process);
    return 0;
}

void process_end_input(struct process *process)
{
    process->input_ends = true;
    if (process->state == PROCESS_RUNNING)
        process_feed_on(process);
}

int process_signal(struct process *process, unsigned number, bool whole_group, error *err)
{
    struct agent_signal wanted = { .number = number, .whole_group = whole_group };
    if (check_runs(process, err) < 0 || session_check_running(process->session, err) < 0)
        return -1;
    process_order(process, AGENT_SIGNAL, &wanted, sizeof wanted);
    return 0;
}

int process_resize(struct process *process, uint64_t rows, uint64_t columns, error *err)
{
    struct agent_size size = { .rows = (uint16_t) rows, .columns = (uint16_t) columns };
    if (check_runs(process, err) < 0)
        return -1;
    if (!process->has_terminal)
        return fail(err, ERR_CONFLICT, "process %s has no terminal", process->id);
    process_order(process, AGENT_RESIZE, &size, sizeof size);
    return 0;
}

void process_write(const struct process *process, struct bytes *out)
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
    json_number_field(out, "started_ms", process->started_ms);
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
    json_close(out, '}');
}
