/* fast_clock.c - lets a process that was linked with the C library dynamically live faster: every
 * clock that it reads moves FACTOR times as fast as the world's, and what it waits for comes as
 * much sooner. FACTOR is the eight bytes of the file that FAST_CLOCK names, and may change at any
 * time.
 *
 * Preloaded into gloveboxd by idle.py: its timers then fire as often as in hours of service. For
 * one thread, as gloveboxd has. */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SEEN __attribute__((visibility("default")))

enum { CLOCKS = 16, BILLION = 1000000000 };

static volatile const int64_t *factor; /* NULL: the world's */

/* Of each clock: what the world's showed when the factor was changed last, and what ours did. */
static struct known {
    int64_t factor, world, ours;
} known[CLOCKS];

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("FAST_CLOCK"); /* NOLINT(concurrency-mt-unsafe): before main */
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, 8, PROT_READ, MAP_SHARED, file, 0);
    if (mapped == MAP_FAILED)
        abort();
    factor = mapped;
    (void) close(file);
}

static int64_t of_world(clockid_t clock)
{
    struct timespec now = { 0 };
    (void) syscall(SYS_clock_gettime, clock, &now);
    return (int64_t) now.tv_sec * BILLION + now.tv_nsec;
}

SEEN int clock_gettime(clockid_t clock, struct timespec *ret_time)
{
    int64_t wanted = factor ? *factor : 1;
    int64_t world = of_world(clock);
    if (clock < 0 || clock >= CLOCKS)
        return (int) syscall(SYS_clock_gettime, clock, ret_time);
    if (known[clock].factor == 0)
        known[clock] = (struct known){ 1, world, world };
    int64_t ours = known[clock].ours + (world - known[clock].world) * known[clock].factor;
    if (wanted != known[clock].factor) {
        known[clock].ours = ours;
        known[clock].world = world;
        known[clock].factor = wanted;
    }
    ret_time->tv_sec = (time_t) (ours / BILLION);
    ret_time->tv_nsec = (long) (ours % BILLION);
    return 0;
}

/* A wait is never made nothing: what is due in a millisecond of ours is not due now. */
static int shorter(int timeout)
{
    int64_t by = factor ? *factor : 1;
    return timeout <= 0 || by <= 1 ? timeout : (int) ((timeout + by - 1) / by);
}

SEEN int epoll_pwait(int epoll, struct epoll_event *events, int max, int timeout,
                     const sigset_t *mask)
{
    return (int) syscall(SYS_epoll_pwait, epoll, events, max, shorter(timeout), mask, 8);
}

SEEN int epoll_wait(int epoll, struct epoll_event *events, int max, int timeout)
{
    return (int) syscall(SYS_epoll_pwait, epoll, events, max, shorter(timeout), NULL, 8);
}
