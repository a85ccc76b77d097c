/* pump.c - see pump.h. */
#include "daemon/pump.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { PIECE = 256 * 1024, PIECES_A_TURN = 4 };

struct pump {
    struct pump_order order;
    uv_poll_t poll;
    uint64_t moved;
    int (*step)(struct pump *pump, error *err);
};

enum { PUMP_WAITS, PUMP_GOES_ON, PUMP_IS_OVER };

static unsigned char piece[PIECE];
static unsigned under_way; /* pumps: they share the pieces of a turn */

static void on_closed(uv_handle_t *handle)
{
    struct pump *pump = handle->data;
    (void) close(pump->order.pipe);
    free(pump);
}

static void end(struct pump *pump, const error *why)
{
    void (*told)(void *user, uint64_t moved, const error *why) = pump->order.told;
    under_way--;
    (void) uv_poll_stop(&pump->poll);
    uv_close((uv_handle_t *) &pump->poll, on_closed);
    if (told)
        told(pump->order.user, pump->moved, why);
}

void pump_abandon(struct pump *pump)
{
    if (!pump)
        return;
    pump->order.told = NULL;
    end(pump, NULL);
}

static int write_piece(const struct pump *pump, size_t size, error *err)
{
    for (size_t at = 0; at < size;) {
        ssize_t put = pwrite(pump->order.file, piece + at, size - at, (off_t) (pump->moved + at));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(err, errno == ENOSPC || errno == EDQUOT ? ERR_FULL : ERR_SYSTEM,
                        "the state folder of glovebox has no room for it");
        at += (size_t) put;
    }
    return 0;
}

static int step_out(struct pump *pump, error *err)
{
    ssize_t got = read(pump->order.pipe, piece, sizeof piece);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return PUMP_WAITS;
    if (got < 0)
        return fail_os(err, "read what is kept");
    if (got == 0)
        return PUMP_IS_OVER;
    if ((uint64_t) got > pump->order.most - pump->moved)
        return fail(err, ERR_LIMIT, "it has more than %llu bytes, which are allowed",
                    (unsigned long long) pump->order.most);
    if (pump->order.grows && pump->order.grows(pump->order.user, (uint64_t) got, err) < 0)
        return -1;
    if (write_piece(pump, (size_t) got, err) < 0)
        return -1;
    pump->moved += (uint64_t) got;
    return PUMP_GOES_ON;
}

static int step_in(struct pump *pump, error *err)
{
    uint64_t left = pump->order.most - pump->moved;
    size_t wanted = left < sizeof piece ? (size_t) left : sizeof piece;
    if (wanted == 0)
        return PUMP_IS_OVER;
    ssize_t got = pread(pump->order.file, piece, wanted, (off_t) pump->moved);
    if (got < 0)
        return fail_os(err, "read what was kept");
    if (got == 0)
        return fail(err, ERR_SYSTEM, "what was kept ends after %llu bytes",
                    (unsigned long long) pump->moved);
    ssize_t put = write(pump->order.pipe, piece, (size_t) got);
    if (put < 0 && (errno == EAGAIN || errno == EINTR))
        return PUMP_WAITS;
    if (put < 0)
        return fail_os(err, "nobody takes what was kept");
    pump->moved += (uint64_t) put;
    return PUMP_GOES_ON;
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct pump *pump = poll->data;
    error err;
    int how = PUMP_GOES_ON;
    (void) events;
    if (status < 0) /* libuv says so of a pipe whose other end is gone */
        how = pump->step == step_out ? PUMP_GOES_ON
                                     : fail(&err, ERR_CONFLICT, "nobody takes what was kept");
    unsigned turns = under_way < PIECES_A_TURN ? PIECES_A_TURN / under_way : 1;
    for (unsigned turn = 0; turn < turns && how == PUMP_GOES_ON; turn++)
        how = pump->step(pump, &err);
    if (how < 0 || how == PUMP_IS_OVER)
        end(pump, how < 0 ? &err : NULL);
}

static int begin(const struct pump_order *order, int events, int (*step)(struct pump *, error *),
                 struct pump **ret_pump, error *err)
{
    struct pump *pump = calloc(1, sizeof *pump);
    if (!pump || fcntl(order->pipe, F_SETFL, O_NONBLOCK) < 0 ||
        uv_poll_init(order->loop, &pump->poll, order->pipe) < 0) {
        (void) close(order->pipe);
        free(pump);
        return fail(err, ERR_SYSTEM, "no memory to carry bytes");
    }
    pump->order = *order;
    pump->step = step;
    pump->poll.data = pump;
    under_way++;
    (void) uv_poll_start(&pump->poll, events, on_ready);
    *ret_pump = pump;
    return 0;
}

int pump_out(const struct pump_order *order, struct pump **ret_pump, error *err)
{
    return begin(order, UV_READABLE, step_out, ret_pump, err);
}

int pump_in(const struct pump_order *order, struct pump **ret_pump, error *err)
{
    return begin(order, UV_WRITABLE, step_in, ret_pump, err);
}
