/* memory.c - the zygote's heap in huge pages. */
#include "python/memory.h"

#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <unistd.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { HUGE = 2 << 20, MAPS_MOST = 256 };

struct range {
    uintptr_t begin, end;
};

/* One line of /proc/self/maps: writable, private, of no file, and large enough for one huge page. */
static int read_range(const char *line, struct range *range)
{
    char rights[5];
    uint64_t inode;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &range->begin, &range->end,
               rights, &inode) != 4)
        return 0;
    range->begin = (range->begin + HUGE - 1) & ~(uintptr_t) (HUGE - 1);
    range->end &= ~(uintptr_t) (HUGE - 1);
    return strcmp(rights, "rw-p") == 0 && inode == 0 && range->begin < range->end &&
           !strstr(line, "[stack]");
}

static uint64_t collapse(void)
{
    static struct range ranges[MAPS_MOST];
    unsigned count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return 0;
    while (count < MAPS_MOST && fgets(line, sizeof line, maps))
        count += read_range(line, &ranges[count]) ? 1U : 0U;
    (void) fclose(maps);

    uint64_t moved = 0;
    for (unsigned i = 0; i < count; i++)
        for (uintptr_t at = ranges[i].begin; at < ranges[i].end; at += HUGE)
            if (madvise((void *) at, HUGE, MADV_COLLAPSE) == 0)
                moved += HUGE;
    return moved;
}

/* Children begin with this much fresh heap. Freeing a large piece that was mapped tells malloc to keep up to
 * twice its size at the top (mallopt(3), M_MMAP_THRESHOLD: the threshold is dynamic). */
static void grow_top(void)
{
    enum { FRESH = 16 << 20 };
    free(malloc(FRESH + (4 << 20)));
    free(malloc(FRESH));
}

uint64_t memory_settle(void)
{
    void *bottom = sbrk(0);
    uint64_t moved = collapse();
    grow_top();
    /* The fresh part comes in small pages: a short program would else pay for clearing 2 MB at its first
     * touch of each. What is beyond it, and large pieces, are large pages again (glibc.malloc.hugetlb). */
    uintptr_t from = ((uintptr_t) bottom - (uintptr_t) HUGE) & ~(uintptr_t) (HUGE - 1);
    (void) madvise((void *) from, (uintptr_t) sbrk(0) - from, MADV_NOHUGEPAGE);
    return moved;
}

/* Where the C library takes memory from once nothing else fits: all above it has never been used. */
static uintptr_t top_of_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return (uintptr_t) sbrk(0) - info.keepcost;
}

static uint64_t fill_heap(void)
{
    enum { LARGEST = 64 << 10, SMALLEST = 16, PIECES_MOST = 1 << 20 };
    uint64_t taken = 0;
    size_t size = LARGEST;
    for (unsigned pieces = 0; size >= SMALLEST && pieces < PIECES_MOST; pieces++) {
        uintptr_t top = top_of_heap();
        void *piece = malloc(size);
        if (!piece || (uintptr_t) piece >= top - 16) {
            free(piece); /* no hole of this size is left */
            size -= size > 4096 ? 4096 : size > 1024 ? 256 : 16;
            continue;
        }
        taken += size;
    }
    return taken;
}

/* CPython's own allocator keeps pools of one size; a piece at the head of a pool is the first of it, so that
 * no other pool of that size had a hole left (Objects/obmalloc.c). */
static uint64_t fill_pools(void *(*allocate)(size_t), void (*release)(void *))
{
    enum { POOL = 16 << 10, HEAD = 48, STEP = 16, LARGEST = 512, PIECES_MOST = 1 << 16 };
    uint64_t taken = 0;
    for (size_t size = STEP; size <= LARGEST; size += STEP)
        for (unsigned pieces = 0; pieces < PIECES_MOST; pieces++) {
            void *piece = allocate(size);
            if (!piece || ((uintptr_t) piece & (POOL - 1)) == HEAD) {
                release(piece);
                break;
            }
            taken += size;
        }
    return taken;
}

uint64_t memory_fill_holes(void *(*allocate)(size_t), void (*release)(void *))
{
    void *piece = allocate(32);
    bool in_heap = (uintptr_t) piece < (uintptr_t) sbrk(0);
    release(piece);
    return (in_heap ? 0 : fill_pools(allocate, release)) + fill_heap();
}

uint64_t memory_resident(void)
{
    uint64_t total = 0;
    uint64_t resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    int got = fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident);
    (void) fclose(file);
    return got == 2 ? resident * (uint64_t) sysconf(_SC_PAGESIZE) : 0;
}

int memory_mount_scratch(error *err)
{
    static const char *const places[] = { "/tmp", "/home/user" };
    if (unshare(CLONE_NEWNS) < 0)
        return fail_os(err, "make a mount namespace for the zygote");
    for (unsigned i = 0; i < 2; i++)
        if (mount("tmpfs", places[i], "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=16m") < 0)
            return fail_os(err, "mount memory at '%s'", places[i]);
    return 0;
}
