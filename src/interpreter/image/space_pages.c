/* space_pages.c - writes an image: the pages of the areas that space.c has found. Nothing is
 * allocated here, either. */
#include "interpreter/image/image_parts.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

/* proc(5), /proc/PID/pagemap */
#define PAGE_PRESENT (UINT64_C(1) << 63)
#define PAGE_SWAPPED (UINT64_C(1) << 62)
#define PAGE_OF_FILE (UINT64_C(1) << 61)
#define PAGE_GUARD   (UINT64_C(1) << 58)

static int add_run(struct space *space, struct image_area *area, uint64_t start, uint64_t bytes,
                   error *err)
{
    struct image_run *last = space->head.runs ? &space->runs[space->head.runs - 1] : NULL;
    area->is_filled = 1;
    space->head.bytes += bytes;
    if (last && last->start + last->bytes == start && last->start >= area->start) {
        last->bytes += bytes;
        return 0;
    }
    if (space->head.runs == COUNT_OF(space->runs))
        return fail(err, ERR_UNAVAILABLE, "memory has too many separate runs of pages");
    space->runs[space->head.runs++] = (struct image_run){ .start = start, .bytes = bytes };
    return 0;
}

/* Finds the pages of private memory that the process has changed. */
static int add_own_pages(struct space *space, int pagemap, struct image_area *area, error *err)
{
    const uint64_t page = space->head.page;
    uint64_t at = area->start;
    while (at < area->end) {
        uint64_t pages = (area->end - at) / page;
        if (pages > COUNT_OF(space->pagemap))
            pages = COUNT_OF(space->pagemap);
        size_t size = pages * sizeof space->pagemap[0];
        if (pread(pagemap, space->pagemap, size, (off_t) (at / page * 8)) != (ssize_t) size)
            return fail_os(err, "read the list of pages");
        for (uint64_t i = 0; i < pages; i++, at += page) {
            uint64_t bits = space->pagemap[i];
            if (!(bits & (PAGE_PRESENT | PAGE_SWAPPED)) || (bits & (PAGE_OF_FILE | PAGE_GUARD)))
                continue;
            if (add_run(space, area, at, page, err) < 0)
                return -1;
        }
    }
    return 0;
}

int space_list(struct space *space, error *err)
{
    auto_fd pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (pagemap < 0)
        return fail_os(err, "open the list of pages");
    for (unsigned i = 0; i < space->head.areas; i++) {
        struct image_area *area = &space->areas[i];
        int listed = 0;
        if (space->whole[i] > 0)
            listed = add_run(space, area, area->start, space->whole[i], err);
        else if (area->kind != IMAGE_OPEN && area->kind != IMAGE_SHARED)
            listed = add_own_pages(space, pagemap, area, err);
        if (listed < 0)
            return -1;
        /* This process is a copy, so memory without read permission may be made readable. */
        if (area->is_filled && !(area->protect & PROT_READ) &&
            mprotect((void *) area->start, area->end - area->start, PROT_READ) < 0)
            return fail_os(err, "make memory readable");
    }
    return 0;
}

static int write_parts(int fd, struct iovec *part, struct iovec *end, error *err)
{
    while (part < end) {
        ssize_t done = writev(fd, part, (int) (end - part));
        if (done < 0 && errno == EAGAIN &&
            poll(&(struct pollfd){ .fd = fd, .events = POLLOUT }, 1, -1) >= 0)
            continue;
        if (done < 0)
            return fail_os(err, "write the image");
        for (size_t left = (size_t) done; part < end && left > 0;) {
            size_t piece = left < part->iov_len ? left : part->iov_len;
            part->iov_base = (char *) part->iov_base + piece;
            part->iov_len -= piece;
            left -= piece;
            part += part->iov_len == 0;
        }
    }
    return 0;
}

int space_write(struct space *space, int fd, error *err)
{
    enum { PIPE_BYTES = 1 << 20 };
    (void) fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    struct iovec parts[IMAGE_BATCH + 1] = {
        { &space->head, sizeof space->head },
        { space->areas, space->head.areas * sizeof space->areas[0] },
        { space->names, space->head.names },
    };
    if (write_parts(fd, parts, parts + 3, err) < 0)
        return -1;
    for (uint64_t done = 0; done < space->head.runs;) {
        uint64_t count = space->head.runs - done;
        count = count < IMAGE_BATCH ? count : IMAGE_BATCH;
        parts[0] = (struct iovec){ &space->runs[done], count * sizeof space->runs[0] };
        for (uint64_t i = 0; i < count; i++)
            parts[i + 1] =
                (struct iovec){ (void *) space->runs[done + i].start, space->runs[done + i].bytes };
        if (write_parts(fd, parts, parts + count + 1, err) < 0)
            return -1;
        done += count;
    }
    struct image_end end = { .magic = IMAGE_END, .bytes = space->head.bytes };
    parts[0] = (struct iovec){ &end, sizeof end };
    return write_parts(fd, parts, parts + 1, err);
}
