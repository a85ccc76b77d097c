/* fill.c - the bytes of the image, read straight to where they belong. */
#include "restore/restore.h"
#include "restore/syscalls.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <time.h>

enum { HUGE = 2 << 20, PIECE = 2 * HUGE, SLOW_US_PER_MIB = 1500 };

static void read_parts(struct iovec *part, struct iovec *end)
{
    while (part < end) {
        long got = kernel(SYS_readv, IMAGE_FD_IMAGE, (long) part, end - part);
        if (got == -EINTR)
            continue;
        if (kernel_failed(got))
            give_up("cannot read the image", NULL, -got);
        if (got == 0)
            give_up("the image ends early", NULL, 0);
        for (size_t left = (size_t) got; part < end && left > 0;) {
            size_t piece = left < part->iov_len ? left : part->iov_len;
            part->iov_base = (char *) part->iov_base + piece;
            part->iov_len -= piece;
            left -= piece;
            if (part->iov_len == 0)
                part++;
        }
    }
}

void image_read(void *into, size_t bytes)
{
    struct iovec part = { .iov_base = into, .iov_len = bytes };
    if (bytes > 0) /* a read of nothing looks like the end */
        read_parts(&part, &part + 1);
}

static uint64_t now_us(void)
{
    struct timespec now = { 0 };
    (void) kernel(SYS_clock_gettime, CLOCK_MONOTONIC, (long) &now);
    return (uint64_t) now.tv_sec * 1000000 + (uint64_t) now.tv_nsec / 1000;
}

/* Asks for a huge page where all of it is written: fewer page faults, and no more memory. A virtual
 * machine may have given free memory back to its host, and gets it again in blocks of 2 MiB: each
 * huge page then waits for the host, while pages of 4 KiB are often still there. So huge pages are
 * not asked for any more once reading a piece was slow (docs/decisions/0174). */
static void read_large(const struct image_run *run)
{
    static bool huge_is_slow;
    uint64_t end = run->start + run->bytes;
    for (uint64_t at = run->start; at < end;) {
        uint64_t to = (at + PIECE) & ~(uint64_t) (HUGE - 1);
        to = to < end ? to : end;
        uint64_t from = (at + HUGE - 1) & ~(uint64_t) (HUGE - 1);
        bool asked = !huge_is_slow && from + HUGE <= to;
        if (asked)
            (void) kernel(SYS_madvise, (long) from, (long) ((to - from) & ~(uint64_t) (HUGE - 1)),
                          MADV_HUGEPAGE);
        uint64_t began = now_us();
        image_read((void *) at, to - at);
        huge_is_slow =
            huge_is_slow || (asked && now_us() - began > ((to - at) >> 20) * SLOW_US_PER_MIB);
        at = to;
    }
}

void fill_areas(const struct plan *plan)
{
    static struct image_run runs[IMAGE_BATCH];
    static struct iovec parts[IMAGE_BATCH];
    struct progress at = { 0 };
    for (uint64_t left = plan->head.runs; left > 0;) {
        unsigned count = left < IMAGE_BATCH ? (unsigned) left : IMAGE_BATCH;
        image_read(runs, count * sizeof *runs);
        unsigned first = 0; /* the first run whose bytes have not been read */
        for (unsigned i = 0; i < count; i++) {
            const char *fault = run_fault(plan, &at, &runs[i]);
            if (fault)
                give_up(fault, NULL, 0);
            parts[i] =
                (struct iovec){ .iov_base = (void *) runs[i].start, .iov_len = runs[i].bytes };
            if (plan->areas[at.area].kind == IMAGE_MEMORY && runs[i].bytes >= HUGE) {
                read_parts(parts + first, parts + i);
                read_large(&runs[i]);
                first = i + 1;
            }
        }
        read_parts(parts + first, parts + count);
        left -= count;
    }
    struct image_end end = { 0 };
    image_read(&end, sizeof end);
    if (memcmp(end.magic, IMAGE_END, sizeof end.magic) != 0 || end.bytes != at.bytes ||
        at.bytes != plan->head.bytes)
        give_up("the image does not end where it should", NULL, 0);
}
