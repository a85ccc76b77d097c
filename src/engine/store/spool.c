/* spool.c - see spool.h. A spool waits on the loop until its pipe is ready; then it is queued as a
 * job of disk_worker.h, and waits again. */
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

struct spool {
    struct spool_order order; /* with our own descriptor of the file */
    uv_poll_t poll;
    uint64_t moved;
    void (*ready)(struct spool *spool);
    struct disk_job job;
    size_t wanted, got; /* in one job */
    error failure;      /* of one job; code ERR_NONE: none */
    bool is_working, is_over;
};

static unsigned char piece[PIECE]; /* for the job that runs */

static void on_closed(uv_handle_t *handle)
{
    struct spool *spool = handle->data;
    (void) close(spool->order.pipe);
    disk_worker_close(spool->order.loop, spool->order.file);
    free(spool);
}

static void end(struct spool *spool, const error *why)
{
    void (*told)(void *user, uint64_t moved, const error *why) = spool->order.told;
    void *user = spool->order.user;
    uint64_t moved = spool->moved;
    spool->is_over = true;
    if (!spool->is_working)
        uv_close((uv_handle_t *) &spool->poll, on_closed);
    if (told)
        told(user, moved, why);
}

void spool_abandon(struct spool *spool)
{
    if (!spool)
        return;
    spool->order.told = NULL;
    end(spool, NULL);
}

/* --- off the event loop ----------------------------------------------------------------------- */

static int write_piece(const struct spool *spool, size_t size, error *err)
{
    uint64_t from = spool->moved + spool->got;
    for (size_t at = 0; at < size;) {
        ssize_t put = pwrite(spool->order.file, piece + at, size - at, (off_t) (from + at));
        if (put < 0 && errno == EINTR)
            continue;
        if (put < 0)
            return fail(err, errno == ENOSPC || errno == EDQUOT ? ERR_FULL : ERR_SYSTEM,
                        "the state folder of glovebox has no room for it");
        at += (size_t) put;
    }
    return 0;
}

static size_t piece_of(const struct spool *spool)
{
    size_t left = spool->wanted - spool->got;
    return left < sizeof piece ? left : sizeof piece;
}

/* The wanted bytes are in the pipe, and no other process reads it. */
static void move_out(void *user)
{
    struct spool *spool = user;
    while (spool->got < spool->wanted) {
        ssize_t got = read(spool->order.pipe, piece, piece_of(spool));
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            (void) fail_os(&spool->failure, "read what is kept");
            return;
        }
        if (write_piece(spool, (size_t) got, &spool->failure) < 0)
            return;
        spool->got += (size_t) got;
    }
}

static void move_in(void *user)
{
    struct spool *spool = user;
    while (spool->got < spool->wanted) {
        uint64_t from = spool->moved + spool->got;
        ssize_t got = pread(spool->order.file, piece, piece_of(spool), (off_t) from);
        if (got < 0)
            (void) fail_os(&spool->failure, "read what was kept");
        else if (got == 0)
            (void) fail(&spool->failure, ERR_SYSTEM, "the stored file ends after %llu bytes",
                        (unsigned long long) from);
        if (got <= 0)
            return;
        ssize_t put = write(spool->order.pipe, piece, (size_t) got);
        if (put < 0 && errno != EAGAIN && errno != EINTR)
            (void) fail_os(&spool->failure, "the reader has closed the pipe");
        if (put < 0)
            return;
        spool->got += (size_t) put;
    }
}

static void wait_for_pipe(struct spool *spool);

static void on_moved(void *user)
{
    struct spool *spool = user;
    spool->is_working = false;
    spool->moved += spool->got;
    if (spool->is_over)
        uv_close((uv_handle_t *) &spool->poll, on_closed);
    else if (spool->failure.code != ERR_NONE)
        end(spool, &spool->failure);
    else
        wait_for_pipe(spool);
}

static void take_turn(struct spool *spool, size_t wanted, void (*work)(void *user))
{
    spool->wanted = wanted;
    spool->got = 0;
    spool->is_working = true;
    spool->job = (struct disk_job){ .work = work, .done = on_moved, .user = spool };
    disk_worker_do(spool->order.loop, &spool->job);
}

/* The pipe was reported readable, and no other process reads it: if it is empty, its writers have
 * closed it. */
static void ready_out(struct spool *spool)
{
    int waiting = 0;
    error err;
    if (ioctl(spool->order.pipe, FIONREAD, &waiting) < 0) {
        (void) fail_os(&err, "read what is kept");
        end(spool, &err);
        return;
    }
    if (waiting == 0) {
        end(spool, NULL);
        return;
    }
    size_t wanted = waiting < TURN ? (size_t) waiting : TURN;
    if (wanted > spool->order.max - spool->moved)
        (void) fail(&err, ERR_LIMIT, "it has more than %llu bytes, which are allowed",
                    (unsigned long long) spool->order.max);
    else if (!spool->order.grows || spool->order.grows(spool->order.user, wanted, &err) == 0) {
        take_turn(spool, wanted, move_out);
        return;
    }
    end(spool, &err);
}

static void ready_in(struct spool *spool)
{
    uint64_t left = spool->order.max - spool->moved;
    if (left == 0)
        end(spool, NULL);
    else
        take_turn(spool, left < TURN ? (size_t) left : TURN, move_in);
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct spool *spool = poll->data;
    error err;
    (void) events;
    (void) uv_poll_stop(poll);
    if (status == 0 || spool->ready == ready_out) {
        spool->ready(spool);
        return;
    }
    (void) fail(&err, ERR_CONFLICT, "the reader has closed the pipe");
    end(spool, &err);
}

static void wait_for_pipe(struct spool *spool)
{
    (void) uv_poll_start(&spool->poll, spool->ready == ready_out ? UV_READABLE : UV_WRITABLE,
                         on_ready);
}

static int begin(const struct spool_order *order, void (*ready)(struct spool *spool),
                 struct spool **ret_pump, error *err)
{
    struct spool *spool = calloc(1, sizeof *spool);
    auto_fd file = fcntl(order->file, F_DUPFD_CLOEXEC, 0);
    if (!spool || file < 0 || fcntl(order->pipe, F_SETFL, O_NONBLOCK) < 0 ||
        uv_poll_init(order->loop, &spool->poll, order->pipe) < 0) {
        (void) close(order->pipe);
        free(spool);
        return fail(err, ERR_SYSTEM, "no memory to copy bytes");
    }
    spool->order = *order;
    spool->order.file = take_fd(&file);
    spool->ready = ready;
    spool->poll.data = spool;
    wait_for_pipe(spool);
    *ret_pump = spool;
    return 0;
}

int spool_out(const struct spool_order *order, struct spool **ret_pump, error *err)
{
    return begin(order, ready_out, ret_pump, err);
}

int spool_in(const struct spool_order *order, struct spool **ret_pump, error *err)
{
    return begin(order, ready_in, ret_pump, err);
}
