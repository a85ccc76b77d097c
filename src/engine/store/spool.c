/* spool.c - see spool.h. A pump waits on the loop until its pipe is ready; then it has its turn in
 * the line of disk_worker.h, and waits again. */
#include "engine/store/spool.h"

#include "base/cleanup.h"
#include "engine/store/disk_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { PIECE = 256 * 1024, TURN = 1024 * 1024 };

struct pump {
    struct pump_order order; /* its file is our own descriptor */
    uv_poll_t poll;
    uint64_t moved;
    void (*ready)(struct pump *pump);
    struct beside_job job;
    size_t wanted, got; /* of a turn */
    error failure;      /* of a turn; code ERR_NONE: none */
    bool is_working, is_over;
};

static unsigned char piece[PIECE]; /* whose turn it is */

static void on_closed(uv_handle_t *handle)
{
    struct pump *pump = handle->data;
    (void) close(pump->order.pipe);
    beside_close(pump->order.loop, pump->order.file);
    free(pump);
}

static void end(struct pump *pump, const error *why)
{
    void (*told)(void *user, uint64_t moved, const error *why) = pump->order.told;
    void *user = pump->order.user;
    uint64_t moved = pump->moved;
    pump->is_over = true;
    if (!pump->is_working)
        uv_close((uv_handle_t *) &pump->poll, on_closed);
    if (told)
        told(user, moved, why);
}

void pump_abandon(struct pump *pump)
{
    if (!pump)
        return;
    pump->order.told = NULL;
    end(pump, NULL);
}

/* --- beside the loop ----------------------------------------------------------------------------
 */

static int write_piece(const struct pump *pump, size_t size, error *err)
{
    uint64_t from = pump->moved + pump->got;
    for (size_t at = 0; at < size;) {
        ssize_t put = pwrite(pump->order.file, piece + at, size - at, (off_t) (from + at));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(err, errno == ENOSPC || errno == EDQUOT ? ERR_FULL : ERR_SYSTEM,
                        "the state folder of glovebox has no room for it");
        at += (size_t) put;
    }
    return 0;
}

static size_t piece_of(const struct pump *pump)
{
    size_t left = pump->wanted - pump->got;
    return left < sizeof piece ? left : sizeof piece;
}

/* What is wanted lies in the pipe, and nobody else reads there. */
static void move_out(void *user)
{
    struct pump *pump = user;
    while (pump->got < pump->wanted) {
        ssize_t got = read(pump->order.pipe, piece, piece_of(pump));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            (void) fail_os(&pump->failure, "read what is kept");
            return;
        }
        if (write_piece(pump, (size_t) got, &pump->failure) < 0)
            return;
        pump->got += (size_t) got;
    }
}

static void move_in(void *user)
{
    struct pump *pump = user;
    while (pump->got < pump->wanted) {
        uint64_t from = pump->moved + pump->got;
        ssize_t got = pread(pump->order.file, piece, piece_of(pump), (off_t) from);
        if (got < 0)
            (void) fail_os(&pump->failure, "read what was kept");
        else if (got == 0)
            (void) fail(&pump->failure, ERR_SYSTEM, "what was kept ends after %llu bytes",
                        (unsigned long long) from);
        if (got <= 0)
            return;
        ssize_t put = write(pump->order.pipe, piece, (size_t) got);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            (void) fail_os(&pump->failure, "nobody takes what was kept");
        if (put < 0)
            return;
        pump->got += (size_t) put;
    }
}

/* --- on the loop --------------------------------------------------------------------------------
 */

static void wait_for_pipe(struct pump *pump);

static void on_moved(void *user)
{
    struct pump *pump = user;
    pump->is_working = false;
    pump->moved += pump->got;
    if (pump->is_over)
        uv_close((uv_handle_t *) &pump->poll, on_closed);
    else if (pump->failure.code != ERR_NONE)
        end(pump, &pump->failure);
    else
        wait_for_pipe(pump);
}

static void take_turn(struct pump *pump, size_t wanted, void (*work)(void *user))
{
    pump->wanted = wanted;
    pump->got = 0;
    pump->is_working = true;
    pump->job = (struct beside_job){ .work = work, .done = on_moved, .user = pump };
    beside_do(pump->order.loop, &pump->job);
}

/* The loop has found it ready a moment ago, and nobody else reads there: when nothing lies in it,
 * its writers are gone. */
static void ready_out(struct pump *pump)
{
    int waiting = 0;
    error err;
    if (ioctl(pump->order.pipe, FIONREAD, &waiting) < 0) {
        (void) fail_os(&err, "read what is kept");
        end(pump, &err);
        return;
    }
    if (waiting == 0) {
        end(pump, NULL);
        return;
    }
    size_t wanted = waiting < TURN ? (size_t) waiting : TURN;
    if (wanted > pump->order.most - pump->moved)
        (void) fail(&err, ERR_LIMIT, "it has more than %llu bytes, which are allowed",
                    (unsigned long long) pump->order.most);
    else if (!pump->order.grows || pump->order.grows(pump->order.user, wanted, &err) == 0) {
        take_turn(pump, wanted, move_out);
        return;
    }
    end(pump, &err);
}

static void ready_in(struct pump *pump)
{
    uint64_t left = pump->order.most - pump->moved;
    if (left == 0)
        end(pump, NULL);
    else
        take_turn(pump, left < TURN ? (size_t) left : TURN, move_in);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct pump *pump = poll->data;
    error err;
    (void) events;
    (void) uv_poll_stop(poll);
    if (status == 0 || pump->ready == ready_out) {
        pump->ready(pump);
        return;
    }
    (void) fail(&err, ERR_CONFLICT,
                "nobody takes what was kept"); /* the pipe's other end is gone */
    end(pump, &err);
}

static void wait_for_pipe(struct pump *pump)
{
    (void) uv_poll_start(&pump->poll, pump->ready == ready_out ? UV_READABLE : UV_WRITABLE,
                         on_ready);
}

static int begin(const struct pump_order *order, void (*ready)(struct pump *pump),
                 struct pump **ret_pump, error *err)
{
    struct pump *pump = calloc(1, sizeof *pump);
    auto_fd file = fcntl(order->file, F_DUPFD_CLOEXEC, 0);
    if (!pump || file < 0 || fcntl(order->pipe, F_SETFL, O_NONBLOCK) < 0 ||
        uv_poll_init(order->loop, &pump->poll, order->pipe) < 0) {
        (void) close(order->pipe);
        free(pump);
        return fail(err, ERR_SYSTEM, "no memory to carry bytes");
    }
    pump->order = *order;
    pump->order.file = take_fd(&file);
    pump->ready = ready;
    pump->poll.data = pump;
    wait_for_pipe(pump);
    *ret_pump = pump;
    return 0;
}

int pump_out(const struct pump_order *order, struct pump **ret_pump, error *err)
{
    return begin(order, ready_out, ret_pump, err);
}

int pump_in(const struct pump_order *order, struct pump **ret_pump, error *err)
{
    return begin(order, ready_in, ret_pump, err);
}
