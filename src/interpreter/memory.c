/* memory.c - prepares the zygote's memory for forks: huge pages, page tables, free heap. */
#include "interpreter/memory.h"

#include "base/read_at.h"

#include <fcntl.h>
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

enum { HUGE = 2 << 20, MAPS_MAX = 256 };

#define HUGE_MASK (~(uintptr_t) (HUGE - 1))

struct range {
    uintptr_t begin, end;
};

/* Reads a line of /proc/self/maps, "begin-end rights offset device inode path": is it writable,
 * private, anonymous, and large enough for one huge page? */
static bool read_range(const char *line, struct range *range)
{
    char *rest;
    uintptr_t begin = strtoul(line, &rest, 16);
    uintptr_t end = strtoul(rest + 1, &rest, 16);
    bool is_private = strncmp(rest, " rw-p ", 6) == 0;
    range->begin = (begin + HUGE - 1) & HUGE_MASK;
    range->end = end & HUGE_MASK;
    return is_private && strstr(rest, " 00:00 0 ") && !strstr(rest, "[stack]") &&
           range->begin < range->end;
}

static void collapse(void)
{
    static struct range ranges[MAPS_MAX];
    unsigned count = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    if (!maps)
        return;
    while (count < MAPS_MAX && fgets(line, sizeof line, maps))
        count += read_range(line, &ranges[count]) ? 1U : 0U;
    (void) fclose(maps);

    for (unsigned i = 0; i < count; i++)
        for (uintptr_t at = ranges[i].begin; at < ranges[i].end; at += HUGE)
            (void) madvise((void *) at, HUGE, MADV_COLLAPSE);
}

/* Files whose code every program uses, by the beginning of their names. */
static const char *const shared_code[] = { "python3", "libc.so", "ld-linux" };

/* fork(2) copies the page tables of a file mapping only if the mapping has a private page
 * (mm/memory.c, vma_needs_copy()); otherwise each child has a fault for each page. Writing one
 * byte, unchanged, makes such a page, and saves each child some 70 faults. */
static void copy_tables_at_fork(const char *line)
{
    char *rest;
    uintptr_t begin = strtoul(line, &rest, 16);
    uintptr_t end = strtoul(rest + 1, &rest, 16);
    bool is_code = strncmp(rest, " r-xp ", 6) == 0;
    const char *name = strrchr(rest, '/');
    if (!name || (!is_code && strncmp(rest, " r--p ", 6) != 0))
        return;
    for (size_t i = 0; i < sizeof shared_code / sizeof *shared_code; i++) {
        int may = PROT_READ | (is_code ? PROT_EXEC : 0);
        volatile char *first = (volatile char *) begin;
        if (strncmp(name + 1, shared_code[i], strlen(shared_code[i])) != 0 ||
            mprotect((void *) begin, end - begin, may | PROT_WRITE) < 0)
            continue;
        char there = *first;
        *first = there;
        (void) mprotect((void *) begin, end - begin, may);
    }
}

static void share_code(void)
{
    static char text[256 << 10]; /* read as a whole, since mprotect(2) changes the list */
    (void) read_text_at(AT_FDCWD, "/proc/self/maps", text, sizeof text);
    for (char *rest = text, *line; (line = strtok_r(rest, "\n", &rest));)
        copy_tables_at_fork(line);
}

/* Children begin with this much unused heap. Freeing a large mapped block makes malloc keep up to
 * twice its size at the top (mallopt(3), M_MMAP_THRESHOLD: the threshold is dynamic). */
static void grow_top(void)
{
    enum { FRESH = 16 << 20 };
    free(malloc(FRESH + (4 << 20)));
    free(malloc(FRESH));
}

void memory_settle(void)
{
    void *bottom = sbrk(0);
    collapse();
    share_code();
    grow_top();
    /* Small pages for the unused part: the kernel would otherwise clear 2 MB at a short program's
     * first touch. Memory beyond it, and large blocks, get huge pages (glibc.malloc.hugetlb). */
    uintptr_t from = ((uintptr_t) bottom - (uintptr_t) HUGE) & HUGE_MASK;
    (void) madvise((void *) from, (uintptr_t) sbrk(0) - from, MADV_NOHUGEPAGE);
}

/* Blocks that are never freed, as a linked list. */
static void *taken_pieces;

/* The begin of the unused memory at the top of the heap, used when no free block fits. */
static uintptr_t top_of_heap(void)
{
    struct mallinfo2 info = mallinfo2();
    return (uintptr_t) sbrk(0) - info.keepcost;
}

void memory_fill_holes(void)
{
    enum { LARGEST = 64 << 10, SMALLEST = 16, PIECES_MAX = 1 << 20 };
    size_t size = LARGEST;
    for (unsigned pieces = 0; size >= SMALLEST && pieces < PIECES_MAX; pieces++) {
        uintptr_t top = top_of_heap();
        void *piece = malloc(size);
        if (!piece || (uintptr_t) piece >= top - 16) {
            free(piece); /* no hole of this size is left */
            size -= size > 4096 ? 4096 : size > 1024 ? 256 : 16;
            continue;
        }
        *(void **) piece = taken_pieces;
        taken_pieces = piece;
    }
}

uint64_t memory_resident(void)
{
    char text[128];
    if (read_text_at(AT_FDCWD, "/proc/self/statm", text, sizeof text) <= 0)
        return 0;
    char *rest;
    (void) strtoull(text, &rest, 10); /* of two numbers the second: proc(5) */
    return strtoull(rest, NULL, 10) * (uint64_t) sysconf(_SC_PAGESIZE);
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
