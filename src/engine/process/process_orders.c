/* process_orders.c - orders of clients to a running process. */
#include "engine/process/processes_internal.h"

void process_feed_on(struct process *process)
{
    while (process->session && process->input.size > 0 && process->window > 0) {
        size_t part = process->input.size < process->window ? process->input.size : process->window;
        if (part > AGENT_PAYLOAD_MAX)
            part = AGENT_PAYLOAD_MAX;
        process->window -= part;
        session_order(process->session, &process->operation, AGENT_DATA, process->input.data, part);
        bytes_drop(&process->input, part);
    }
    if (process->input.size == 0 && process->input_ends && !process->input_has_ended) {
        process->input_has_ended = true;
        session_order(process->session, &process->operation, AGENT_END, NULL, 0);
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
    session_order(process->session, &process->operation, AGENT_SIGNAL, &wanted, sizeof wanted);
    return 0;
}

int process_resize(struct process *process, uint16_t rows, uint16_t columns, error *err)
{
    struct agent_size size = { .rows = rows, .columns = columns };
    if (check_runs(process, err) < 0)
        return -1;
    if (!process->has_terminal)
        return fail(err, ERR_CONFLICT, "process %s has no terminal", process->id);
    session_order(process->session, &process->operation, AGENT_RESIZE, &size, sizeof size);
    return 0;
}
