/* clock.c - time, chance and the threads of the daemon.
 *
 * These functions take the place of those of the C library, also for libuv and libsodium: a symbol
 * that the program exports goes before that of a library. A wait takes no time; the clock goes on
 * by as much as was waited for. Work of libuv's threads is done by timers of the loop, which take
 * as long as the seed says. */
#include "simulate.h"

#include <errno.h>
#include <signal.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

EXPORTED int clock_gettime(clockid_t clock, struct timespec *at);
EXPORTED int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout,
                         const sigset_t *mask);
EXPORTED int epoll_wait(int fd, struct epoll_event *events, int max, int timeout);
EXPORTED int nanosleep(const struct timespec *wanted, struct timespec *left);

bool sim_is_on;
uv_loop_t *sim_loop;

/* --- the clock -------------------------------------------------------------------------------- */

int clock_gettime(clockid_t clock, struct timespec *at)
{
    if (!sim_is_on)
        return (int) syscall(SYS_clock_gettime, clock, at);
    int64_t us = world->clock_us += 1; /* a look takes time, so that nothing waits for ever */
    if (clock == CLOCK_REALTIME)
        us += world->wall_offset_us;
    *at = (struct timespec){ .tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000 };
    return 0;
}

int nanosleep(const struct timespec *wanted, struct timespec *left)
{
    if (!sim_is_on)
        return (int) syscall(SYS_nanosleep, wanted, left);
    world->clock_us += (int64_t) wanted->tv_sec * 1000000 + wanted->tv_nsec / 1000;
    return 0;
}

int epoll_pwait(int fd, struct epoll_event *events, int max, int timeout, const sigset_t *mask)
{
    enum { MASK_BYTES = 8, LONGEST_US = 900000000 };
    int ready =
        (int) syscall(SYS_epoll_pwait, fd, events, max, sim_is_on ? 0 : timeout, mask, MASK_BYTES);
    if (!sim_is_on || ready != 0 || timeout == 0)
        return ready;
    if (timeout < 0)
        finding("the daemon waits for something that never comes");
    world->clock_us += (int64_t) timeout * 1000;
    if (world->clock_us > LONGEST_US * (int64_t) (world->incarnation + 1))
        finding("the daemon does not come to its end");
    return 0;
}

int epoll_wait(int fd, struct epoll_event *events, int max, int timeout)
{
    return epoll_pwait(fd, events, max, timeout, NULL);
}

/* --- steps ------------------------------------------------------------------------------------ */

void sim_op(void)
{
    if (!sim_is_on || ++world->ops != world->ends_at_op || world->ending == ENDS_WELL)
        return;
    trace(world->ending == ENDS_KILLED ? "killed" : "the power is cut");
    world_daemon_ends(world->ending);
    _exit(EXIT_DIED);
}

struct after {
    uv_timer_t timer;
    void (*call)(void *context);
    void *context;
};

static void on_after_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_after(uv_timer_t *timer)
{
    const struct after *after = timer->data;
    after->call(after->context);
    uv_close((uv_handle_t *) timer, on_after_closed);
}

void sim_after(int64_t us, void (*call)(void *context), void *context)
{
    struct after *after = __real_calloc(1, sizeof *after);
    if (!after)
        abort();
    *after = (struct after){ .call = call, .context = context };
    after->timer.data = after;
    (void) uv_timer_init(sim_loop, &after->timer);
    uv_unref((uv_handle_t *) &after->timer);
    (void) uv_timer_start(&after->timer, on_after, (uint64_t) us / 1000, 0);
}

/* --- threads ---------------------------------------------------------------------------------- */

struct work {
    uv_timer_t timer;
    uv_work_t *request;
    uv_work_cb work;
    uv_after_work_cb done;
};

static void on_work_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_work_done(uv_timer_t *timer)
{
    struct work *work = timer->data;
    trace("a thread has done its work");
    work->done(work->request, 0);
    uv_close((uv_handle_t *) timer, on_work_closed);
}

/* The disk has the bytes at one moment, and the loop hears of it later. */
static void on_work(uv_timer_t *timer)
{
    struct work *work = timer->data;
    work->work(work->request);
    (void) uv_timer_start(timer, on_work_done, chance(4), 0);
}

int uv_queue_work(uv_loop_t *loop, uv_work_t *request, uv_work_cb work, uv_after_work_cb done)
{
    struct work *row = __real_calloc(1, sizeof *row);
    if (!row)
        return UV_ENOMEM;
    bool is_slow = chance(100) < world->slow_disk;
    *row = (struct work){ .request = request, .work = work, .done = done };
    request->loop = loop;
    row->timer.data = row;
    (void) uv_timer_init(loop, &row->timer);
    (void) uv_timer_start(&row->timer, on_work, is_slow ? 20 + chance(40) : chance(5), 0);
    return 0;
}

/* --- chance ----------------------------------------------------------------------------------- */

static const char *name_of_random(void)
{
    return "seed";
}

static uint32_t random_word(void)
{
    uint32_t word;
    fill_random(&word, sizeof word);
    return word;
}

static void random_bytes(void *const to, const size_t size)
{
    fill_random(to, size);
}

void clock_begin(void)
{
    static struct randombytes_implementation by_seed = { .implementation_name = name_of_random,
                                                         .random = random_word,
                                                         .buf = random_bytes };
    (void) randombytes_set_implementation(&by_seed);
}
