/* orders.c - the orders of gloveboxd to init, a row each. An order that is shorter than its row
 * says is refused before it is read; the payload is followed by a NUL that is not counted. */
#include "init/operations.h"

#include "base/table.h"

#include <string.h>

/* All handlers have one signature, and some do not use all parameters. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

/* Carries out an order. The answer is DONE with the same id, unless the handler answers itself. */
typedef int order(struct sandbox *sandbox, const struct frame *in, error *err);

static int on_put(struct sandbox *sandbox, const struct frame *in, error *err)
{
    return put_begin(sandbox, in->head.id, in->payload, in->head.size, err);
}

/* Bytes belong to the file that is being written, or else to a program's stdin. */
static int on_data(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (is_putting(in->head.id))
        return put_data(in->head.id, in->payload, in->head.size, err);
    if (operation_on_frame(sandbox, in) || !program_of(sandbox, in->head.id))
        return 0; /* it has ended meanwhile, which gloveboxd could not know */
    return feed_program(sandbox, in->head.id, in->payload, in->head.size, err);
}

static int on_end(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (!is_putting(in->head.id)) {
        if (!operation_on_frame(sandbox, in))
            end_input(sandbox, in->head.id);
        return 0;
    }
    int ended = put_end(in->head.id, err);
    if (ended == PUT_WELL)
        send_done(sandbox, in->head.id, NULL);
    return ended < 0 ? -1 : 0;
}

static int on_credit(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (!operation_on_frame(sandbox, in))
        (void) grant_output(sandbox, in);
    return 0;
}

static int on_cancel(struct sandbox *sandbox, const struct frame *in, error *err)
{
    (void) operation_on_frame(sandbox, in);
    return 0;
}

static int on_seal(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (seal_inputs(sandbox, err) < 0)
        return -1;
    measure_scratch(sandbox);
    sandbox->usage.inputs_bytes = sandbox->measured.disk_bytes;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_start(struct sandbox *sandbox, const struct frame *in, error *err)
{
    begin_usage(sandbox);
    return start_program(sandbox, in, err);
}

static int on_execute(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (sandbox->is_kept) { /* each cell counts its own refusals and full disks */
        sandbox->denials = 0;
        sandbox->measured.disk_was_full = sandbox->measured.inodes_were_full = 0;
        sandbox->usage.processes_were_full = false;
    }
    if (((const struct agent_execute *) in->payload)->mode != AGENT_MODE_PRIME)
        begin_usage(sandbox);
    sandbox->conclusion.is_due = false; /* the code that ended before was AGENT_MODE_PRIME */
    return execute_code(sandbox, in->head.id, in->payload, in->head.size, err);
}

static int on_keep(struct sandbox *sandbox, const struct frame *in, error *err)
{
    sandbox->is_kept = true;
    for_each(program, sandbox->programs)
        program->is_main = false;
    return 0;
}

static int on_bound(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_bound bound;
    memcpy(&bound, in->payload, sizeof bound);
    return bound_usage(sandbox, &bound, err);
}

static int on_signal(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (signal_program(sandbox, in->head.id, (const void *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_resize(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (resize_terminal(sandbox, in->head.id, (const void *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static void stop(struct sandbox *sandbox, uint32_t id)
{
    stop_everything(sandbox);
    finish_programs(sandbox);
    measure_scratch(sandbox);
    tell_usage(sandbox);
    send_frame(sandbox, AGENT_STOPPED, 0, id, &sandbox->measured, sizeof sandbox->measured, NULL,
               0);
}

static int on_stop(struct sandbox *sandbox, const struct frame *in, error *err)
{
    sandbox->conclusion.is_due = true;
    if (!sandbox->conclusion.is_ordered)
        stop(sandbox, in->head.id);
    return 0;
}

static int on_conclude(struct sandbox *sandbox, const struct frame *in, error *err)
{
    memcpy(&sandbox->conclusion.limits, in->payload, sizeof sandbox->conclusion.limits);
    sandbox->conclusion.id = in->head.id;
    sandbox->conclusion.is_ordered = true;
    return 0;
}

void conclude_if_due(struct sandbox *sandbox)
{
    error err;
    if (!sandbox->conclusion.is_ordered || !sandbox->conclusion.is_due ||
        sandbox->conclusion.is_done)
        return;
    uint32_t id = sandbox->conclusion.id;
    sandbox->conclusion.is_done = true;
    hold_frames();
    stop(sandbox, id);
    int collected = collect_artifacts(sandbox, id, &sandbox->conclusion.limits, &err);
    send_done(sandbox, id, collected < 0 ? &err : NULL);
    release_frames(sandbox);
}

static int on_collect(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_collect limits;
    memcpy(&limits, in->payload, sizeof limits);
    if (collect_artifacts(sandbox, in->head.id, &limits, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_measure(struct sandbox *sandbox, const struct frame *in, error *err)
{
    measure_scratch(sandbox);
    sandbox->measured.processes = programs_alive(sandbox);
    tell_usage(sandbox);
    send_frame(sandbox, AGENT_MEASURED, 0, in->head.id, &sandbox->measured,
               sizeof sandbox->measured, NULL, 0);
    return 0;
}

static int on_list(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_list limits;
    memcpy(&limits, in->payload, sizeof limits);
    if (list_folder(sandbox, in->head.id, &limits, (const char *) in->payload + sizeof limits,
                    err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_make(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (make_folder(sandbox, (const char *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_move(struct sandbox *sandbox, const struct frame *in, error *err)
{
    const char *from = (const char *) in->payload;
    size_t length = strlen(from);
    if (length + 1 >= in->head.size)
        return fail(err, ERR_PROTOCOL, "a move needs two paths");
    if (move_path(sandbox, from, from + length + 1, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_remove(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (remove_path(sandbox, (const char *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

/* clang-format off */
static const struct {
    size_t min; /* bytes of payload */
    order *carry_out;
} orders[] = {
    [AGENT_PUT]     = { sizeof(struct agent_put) + 1,     on_put     },
    [AGENT_DATA]    = { 0,                                 on_data    },
    [AGENT_END]     = { 0,                                 on_end     },
    [AGENT_SEAL]    = { 0,                                 on_seal    },
    [AGENT_START]   = { sizeof(struct agent_start) + 1,   on_start   },
    [AGENT_SIGNAL]  = { sizeof(struct agent_signal),      on_signal  },
    [AGENT_STOP]    = { 0,                                 on_stop    },
    [AGENT_COLLECT] = { sizeof(struct agent_collect),     on_collect },
    [AGENT_MEASURE] = { 0,                                 on_measure },
    [AGENT_LIST]    = { sizeof(struct agent_list),        on_list    },
    [AGENT_MAKE]    = { 1,                                 on_make    },
    [AGENT_MOVE]    = { 3,                                 on_move    },
    [AGENT_REMOVE]  = { 1,                                 on_remove  },
    [AGENT_RESIZE]  = { sizeof(struct agent_size),        on_resize  },
    [AGENT_CREDIT]  = { sizeof(struct agent_amount),      on_credit  },
    [AGENT_READ]    = { sizeof(struct agent_read) + 1,    begin_read },
    [AGENT_WRITE]   = { sizeof(struct agent_write) + 1,   begin_write },
    [AGENT_STAT]    = { 0,                                 stat_path  },
    [AGENT_PACK]    = { sizeof(struct agent_flow),        begin_pack },
    [AGENT_UNPACK]  = { 0,                                 begin_unpack },
    [AGENT_WATCH]   = { sizeof(struct agent_watch),       begin_watch },
    [AGENT_CONNECT] = { sizeof(struct agent_connect),     begin_connect },
    [AGENT_CANCEL]  = { 0,                                 on_cancel  },
    [AGENT_IMAGE]   = { 0,                                 image_interpreter },
    [AGENT_SAVE]    = { 0,                                 begin_save },
    [AGENT_LOAD]    = { 0,                                 begin_load },
    [AGENT_EXECUTE] = { sizeof(struct agent_execute) + 2, on_execute },
    [AGENT_KEEP]    = { 0,                                 on_keep    },
    [AGENT_CONCLUDE] = { sizeof(struct agent_collect),    on_conclude },
    [AGENT_BOUND]   = { sizeof(struct agent_bound),       on_bound   },
};
/* clang-format on */

void obey_order(struct sandbox *sandbox, const struct frame *frame)
{
    error err = { 0 };
    uint16_t kind = frame->head.kind;
    if (kind >= COUNT_OF(orders) || !orders[kind].carry_out || frame->head.size < orders[kind].min)
        (void) fail(&err, ERR_PROTOCOL, "order %u does not exist or is too short", kind);
    else if (orders[kind].carry_out(sandbox, frame, &err) == 0)
        return;
    send_done(sandbox, frame->head.id, &err);
}
