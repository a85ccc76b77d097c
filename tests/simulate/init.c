/* init.c - plays the glovebox-init of a sandbox: says what it would, as late as the seed says, and
 * does what the code of an order is to do. */
#include "sandbox_internal.h"

#include "base/table.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

/* --- frames of an init ------------------------------------------------------------------------ */

static void on_later(void *context)
{
    struct later *later = context;
    struct slot *slot = slot_at(later->slot);
    if (slot->is_used && slot->generation == later->generation && slot->stream >= 0 &&
        !slot->is_deaf)
        later->call(slot, later);
    free(later);
}

void in_a_while(struct slot *slot, int64_t us, uint32_t id,
                void (*call)(struct slot *slot, const struct later *later))
{
    struct later *later = __real_calloc(1, sizeof *later);
    if (!later)
        abort();
    *later = (struct later){
        .slot = slot_index(slot), .generation = slot->generation, .id = id, .call = call
    };
    sim_after(us, on_later, later);
}

void say(struct slot *slot, enum agent_kind kind, uint32_t id, const void *body, size_t size)
{
    unsigned char text[1024];
    struct agent_frame frame = {
        .size = (uint32_t) size, .kind = (uint16_t) kind, .stream = kind == AGENT_OUTPUT, .id = id
    };
    memcpy(text, &frame, sizeof frame);
    memcpy(text + sizeof frame, body, size);
    trace("slot %u says %u of %u", slot_index(slot), kind, id);
    (void) !send(slot->stream, text, sizeof frame + size, MSG_NOSIGNAL | MSG_DONTWAIT);
    sim_op();
}

static void say_done(struct slot *slot, uint32_t id)
{
    struct agent_done done = { 0 };
    say(slot, AGENT_DONE, id, &done, sizeof done);
}

static void say_measured(struct slot *slot, enum agent_kind kind, uint32_t id)
{
    struct agent_measured measured = { .disk_bytes = 4096, .disk_peak_bytes = 4096, .inodes = 3 };
    say(slot, kind, id, &measured, sizeof measured);
}

/* --- files that are collected ----------------------------------------------------------------- */

static void collect(struct slot *slot, const struct later *later)
{
    char text[64], path[80];
    if (slot->has_file) {
        int size = snprintf(text, sizeof text, "file of %u", slot->order % 7); /* some are known */
        struct agent_file file = { .size = (uint64_t) size, .mode = 0100644, .depth = 1 };
        memcpy(path, &file, sizeof file);
        memcpy(path + sizeof file, "made.txt", 8);
        say(slot, AGENT_FILE, later->id, path, sizeof file + 8);
        say(slot, AGENT_DATA, later->id, text, (size_t) size);
        say(slot, AGENT_END, later->id, "", 0);
    }
    say_done(slot, later->id);
}

static void stop_and_collect(struct slot *slot, const struct later *later)
{
    slot->running = 0;
    say_measured(slot, AGENT_STOPPED, later->id);
    collect(slot, later);
}

/* --- programs --------------------------------------------------------------------------------- */

static void say_output(struct slot *slot, uint32_t id)
{
    char text[64];
    int size = snprintf(text, sizeof text, "output of order %u\n", slot->order);
    say(slot, AGENT_OUTPUT, id, text, (size_t) size);
}

static void end_program(struct slot *slot, int exit_code, int signal)
{
    uint32_t id = slot->running;
    if (id == 0)
        return;
    slot->running = 0;
    if (slot->is_forked && id == AGENT_INTERPRETER && signal == 0 && !slot->is_session) {
        struct agent_executed executed = { .exit_code = exit_code, .ends = 1, .count = 1 };
        say(slot, AGENT_EXECUTED, id, &executed, sizeof executed);
    } else if (slot->is_session && signal == 0) {
        struct agent_executed executed = { .exit_code = exit_code != 0, .count = ++slot->executed };
        say_measured(slot, AGENT_MEASURED, id);
        say(slot, AGENT_EXECUTED, id, &executed, sizeof executed);
        return;
    } else {
        struct agent_exited exited = { signal ? -1 : exit_code, signal };
        say(slot, AGENT_EXITED, id, &exited, sizeof exited);
    }
    if (slot->concludes && !slot->is_session)
        in_a_while(slot, some_time_us(), slot->collect_id, stop_and_collect);
}

static void print_again(struct slot *slot, const struct later *later)
{
    if (slot->running != later->id)
        return;
    say_output(slot, later->id);
    if (one_in(4))
        end_program(slot, 0, 0);
    else
        in_a_while(slot, some_time_us(), later->id, print_again);
}

static void act(struct slot *slot, const struct later *later)
{
    struct agent_frame lie = { .size = 4, .kind = 999, .id = 7 };
    if (slot->running != later->id)
        return;
    switch (slot->behaviour) {
    case DOES_SLEEP:
        return;
    case DOES_BREAK:
        break_down(slot);
        return;
    case DOES_LIE:
        (void) !send(slot->stream, &lie, sizeof lie, MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    case DOES_STALL:
        slot->is_deaf = true;
        return;
    case DOES_SLOW:
        print_again(slot, later);
        return;
    case DOES_DIE:
        end_program(slot, 0, 11);
        return;
    case DOES_FILE:
        slot->has_file = true;
        break;
    case DOES_PRINT:
    case DOES_FAIL:
    case BEHAVIOURS:
        break;
    }
    say_output(slot, later->id);
    end_program(slot, slot->behaviour == DOES_FAIL ? 3 : 0, 0);
}

/* The one moment in which code of an order runs. */
static void run_code(struct slot *slot, uint32_t id, const void *text, size_t size)
{
    if (!order_in(text, size, &slot->order, &slot->behaviour))
        return; /* the kernel's own, as PRIME */
    const char *owner = tenant_of(world->orders[slot->order].caller);
    if (slot->owner[0] && (!slot->is_kept || strcmp(slot->owner, owner) != 0))
        finding("slot %u runs order %u of %s after one of %s", slot_index(slot), slot->order, owner,
                slot->owner);
    (void) snprintf(slot->owner, sizeof slot->owner, "%s", owner);
    slot->running = id;
    slot->is_session = slot->is_kept;
    world_executed(slot->order, slot_index(slot));
    in_a_while(slot, some_time_us(), id, act);
}

/* --- what gloveboxd asks of an init ----------------------------------------------------------- */

static void interrupt(struct slot *slot, const struct agent_frame *frame,
                      const unsigned char *payload)
{
    struct agent_signal order;
    memcpy(&order, payload, sizeof order);
    say_done(slot, frame->id);
    if (slot->running != frame->id && order.number != 9)
        return;
    if (order.number == 9) {
        struct agent_exited exited = { -1, 9 };
        slot->running = 0;
        say(slot, AGENT_EXITED, frame->id, &exited, sizeof exited);
    } else if (!one_in(5)) { /* some do not listen */
        end_program(slot, 1, 0);
    }
}

static void stop(struct slot *slot, const struct later *later)
{
    slot->running = 0;
    if (slot->concludes)
        stop_and_collect(slot, &(struct later){ .id = slot->collect_id });
    else
        say_measured(slot, AGENT_STOPPED, later->id);
}

static void say_done_later(struct slot *slot, const struct later *later)
{
    say_done(slot, later->id);
}

static void start_program(struct slot *slot, const struct agent_frame *frame,
                          const unsigned char *payload)
{
    struct agent_started started = { .pid = 2 };
    say(slot, AGENT_STARTED, frame->id, &started, sizeof started);
    if (slot->put_size > 0)
        run_code(slot, frame->id, slot->put, slot->put_size);
    else
        run_code(slot, frame->id, payload, frame->size);
}

static void take_data(struct slot *slot, const struct agent_frame *frame,
                      const unsigned char *payload)
{
    if (frame->size > PUT_ROOM - slot->put_size)
        return;
    memcpy(slot->put + slot->put_size, payload, frame->size);
    slot->put_size += frame->size;
}

static void end_data(struct slot *slot, const struct agent_frame *frame,
                     const unsigned char *payload)
{
    (void) payload;
    if (frame->id != AGENT_INTERPRETER && !slot->is_kept)
        in_a_while(slot, some_time_us(), frame->id, say_done_later);
}

static void seal(struct slot *slot, const struct agent_frame *frame, const unsigned char *payload)
{
    (void) payload;
    in_a_while(slot, some_time_us(), frame->id, say_done_later);
}

static void execute(struct slot *slot, const struct agent_frame *frame,
                    const unsigned char *payload)
{
    run_code(slot, frame->id, payload, frame->size);
}

static void conclude(struct slot *slot, const struct agent_frame *frame,
                     const unsigned char *payload)
{
    (void) payload;
    slot->concludes = true;
    slot->collect_id = frame->id;
}

static void collect_later(struct slot *slot, const struct agent_frame *frame,
                          const unsigned char *payload)
{
    (void) payload;
    in_a_while(slot, some_time_us(), frame->id, collect);
}

static void measure(struct slot *slot, const struct agent_frame *frame,
                    const unsigned char *payload)
{
    (void) payload;
    say_measured(slot, AGENT_MEASURED, frame->id);
}

static void stop_later(struct slot *slot, const struct agent_frame *frame,
                       const unsigned char *payload)
{
    (void) payload;
    in_a_while(slot, some_time_us(), frame->id, stop);
}

static void keep(struct slot *slot, const struct agent_frame *frame, const unsigned char *payload)
{
    (void) frame;
    (void) payload;
    slot->is_kept = true;
}

typedef void hearing(struct slot *slot, const struct agent_frame *frame,
                     const unsigned char *payload);

/* What is not here needs no answer. */
static hearing *const hearings[] = {
    [AGENT_DATA] = take_data,        [AGENT_END] = end_data,    [AGENT_SEAL] = seal,
    [AGENT_START] = start_program,   [AGENT_EXECUTE] = execute, [AGENT_CONCLUDE] = conclude,
    [AGENT_COLLECT] = collect_later, [AGENT_MEASURE] = measure, [AGENT_STOP] = stop_later,
    [AGENT_SIGNAL] = interrupt,      [AGENT_KEEP] = keep,
};

static void hear(struct slot *slot, const struct agent_frame *frame, const unsigned char *payload)
{
    trace("slot %u hears %u of %u", slot_index(slot), frame->kind, frame->id);
    if (frame->kind < COUNT_OF(hearings) && hearings[frame->kind])
        hearings[frame->kind](slot, frame, payload);
}

void on_stream(uv_poll_t *poll, int status, int events)
{
    struct slot *slot = poll->data;
    (void) events;
    sim_is_outside = true;
    ssize_t got = status < 0 ? 0
                             : recv(slot->stream, slot->from_daemon + slot->got,
                                    STREAM_ROOM - slot->got, MSG_DONTWAIT);
    sim_is_outside = false;
    if (got <= 0) {
        if (got == 0 || errno != EAGAIN)
            (void) uv_poll_stop(poll);
        return;
    }
    slot->got += (size_t) got;
    size_t at = 0;
    struct agent_frame frame;
    while (slot->stream >= 0 && slot->got - at >= sizeof frame) {
        memcpy(&frame, slot->from_daemon + at, sizeof frame);
        if (slot->got - at < sizeof frame + frame.size)
            break;
        if (!slot->is_deaf)
            hear(slot, &frame, slot->from_daemon + at + sizeof frame);
        at += sizeof frame + frame.size;
    }
    if (slot->stream < 0)
        return;
    memmove(slot->from_daemon, slot->from_daemon + at, slot->got - at);
    slot->got -= at;
}
