/* heap_trim.c - a timer, and the least that was resident beyond what is in use since the last trim:
 * what malloc_trim(3) returned is not resident, but counts as part of the heap. */
#include "daemon/heap_trim.h"

#include <fcntl.h>
#include <limits.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Larger blocks are mapped and unmapped one by one; mallopt(3) takes no more. The next large result
 * finds the memory of smaller ones cleared: a third of its time (decision 183). */
enum { LARGE_BYTES = 32 << 20 };
enum { LOOK_MS = 5000, LOOKS = 3, TRIM_FROM = 4 << 20, STATM_MAX = 128 };

static struct {
    uv_timer_t timer;
    long long least;
    unsigned looks; /* that have found so much more in a row */
    int statm;      /* proc(5); -1 until it is open */
} trim = { .least = LLONG_MAX, .statm = -1 };

/* Bytes. Blocks of 32 MiB and more are mapped alone, and free() unmaps them. */
static long long resident_unused(void)
{
    char text[STATM_MAX + 1] = "";
    const char *second = pread(trim.statm, text, STATM_MAX, 0) > 0 ? strchr(text, ' ') : NULL;
    long long pages = second ? strtoll(second, NULL, 10) : 0;
    struct mallinfo2 heap = mallinfo2();
    return pages * sysconf(_SC_PAGESIZE) - (long long) heap.uordblks - (long long) heap.hblkhd;
}

static void on_timer(uv_timer_t *timer)
{
    (void) timer;
    long long unused = resident_unused();
    bool is_peak = unused - TRIM_FROM > trim.least;
    trim.looks = is_peak ? trim.looks + 1 : 0;
    if (trim.looks == LOOKS) {
        (void) malloc_trim(0);
        trim.looks = 0;
        trim.least = resident_unused();
    } else if (unused < trim.least)
        trim.least = unused;
}

void heap_prepare(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): no other thread has begun yet */
    (void) mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
    (void) mallopt(M_TRIM_THRESHOLD, LARGE_BYTES);
    (void) mallopt(M_ARENA_MAX, 1);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

void heap_trim_open(uv_loop_t *loop)
{
    trim.statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    if (trim.statm < 0)
        return;
    (void) uv_timer_init(loop, &trim.timer);
    (void) uv_timer_start(&trim.timer, on_timer, 0, LOOK_MS);
    uv_unref((uv_handle_t *) &trim.timer);
}

void heap_trim_close(void)
{
    if (trim.statm < 0)
        return;
    uv_close((uv_handle_t *) &trim.timer, NULL); /* the file is closed by the end of gloveboxd */
    trim.statm = -1;
}
