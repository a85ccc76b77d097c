/* huge_pages.h - asks for pages of 2 MiB for megabytes of memory that are about to be filled.
 *
 * For a result of 8 MiB, page faults took two fifths of the time, 512 for each 2 MiB. Where the
 * kernel has no huge pages this has no effect. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

enum { HUGE_PAGE = 2 * 1024 * 1024 };

static inline void huge_pages_wanted(void *data, size_t size)
{
    uintptr_t begin = ((uintptr_t) data + HUGE_PAGE - 1) & ~(uintptr_t) (HUGE_PAGE - 1);
    uintptr_t end = ((uintptr_t) data + size) & ~(uintptr_t) (HUGE_PAGE - 1);
    if (end > begin)
        (void) madvise((void *) begin, end - begin, MADV_HUGEPAGE);
}
