/* fill.c - the bytes of the image, read straight to where they belong. */
#include "restore/restore.h"
#include "restore/syscalls.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/uio.h>

enum { HUGE = 2 << 20 };

void image_read(void *into, size_t bytes)
{
    char *at = into;
    while (bytes > 0) {
        long got = kernel(SYS_read, IMAGE_FD_IMAGE, (long) at, (long) bytes);
        if (got == -EINTR)
            continue;
        if (kernel_failed(got))
            give_up("cannot read the image", NULL, -got);
        if (got == 0)
            give_up("the image ends early", NULL, 0);
        at += got;
        bytes -= (size_t) got;
    }
}

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

/* Large pages where all of one is written: fewer faults, and no memory more. */
static void ask_for_huge(const struct image_run *run)
{
    uint64_t from = (run->start + HUGE - 1) & ~(uint64_t) (HUGE - 1);
    uint64_t to = (run->start + run->bytes) & ~(uint64_t) (HUGE - 1);
    if (from < to)
        (void) kernel(SYS_madvise, (long) from, (long) (to - from), MADV_HUGEPAGE);
}

void fill_areas(const struct plan *plan)
{
    static struct image_run runs[IMAGE_BATCH];
    static struct iovec parts[IMAGE_BATCH];
    struct progress at = { 0 };
    for (uint64_t left = plan->head.runs; left > 0;) {
        unsigned count = left < IMAGE_BATCH ? (unsigned) left : IMAGE_BATCH;
        image_read(runs, count * sizeof *runs);
        for (unsigned i = 0; i < count; i++) {
            const char *fault = run_fault(plan, &at, &runs[i]);
            if (fault)
                give_up(fault, NULL, 0);
            if (plan->areas[at.area].kind == IMAGE_MEMORY)
                ask_for_huge(&runs[i]);
            parts[i] =
                (struct iovec){ .iov_base = (void *) runs[i].start, .iov_len = runs[i].bytes };
        }
        read_parts(parts, parts + count);
        left -= count;
    }
    struct image_end end = { 0 };
    image_read(&end, sizeof end);
    if (memcmp(end.magic, IMAGE_END, sizeof end.magic) != 0 || end.bytes != at.bytes ||
        at.bytes != plan->head.bytes)
        give_up("the image does not end where it should", NULL, 0);
}
