/* space.c - replaces the address space of this process with that of the image. */
#include "restore/restore.h"
#include "restore/syscalls.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/stat.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { RANGES_MAX = 64, MAPS_MAX = 32768 };

/* The vdso pages are moved by way of here, behind any break that the kernel can have chosen. */
#define WAITING_FROM (IMAGE_RESTORE_TO - (UINT64_C(16) << 20))

struct range {
    uint64_t start, end;
};

static uint64_t read_hex(const char **text)
{
    uint64_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        if (c >= '0' && c <= '9')
            value = value * 16 + (uint64_t) (c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value * 16 + (uint64_t) (c - 'a') + 10;
        else
            return value;
    }
}

static bool ends_with(const char *line, const char *end, const char *name)
{
    size_t size = strlen(name);
    return (size_t) (end - line) > size && memcmp(end - size, name, size) == 0;
}

static size_t read_maps(char *text)
{
    long file = kernel(SYS_openat, AT_FDCWD, (long) "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (kernel_failed(file))
        give_up("cannot open /proc/self/maps", NULL, -file);
    size_t size = 0;
    for (;;) {
        long got = kernel(SYS_read, file, (long) (text + size), (long) (MAPS_MAX - size));
        if (kernel_failed(got) || size == MAPS_MAX)
            give_up("cannot read /proc/self/maps", NULL, -got);
        if (got == 0)
            break;
        size += (size_t) got;
    }
    (void) kernel(SYS_close, file);
    return size;
}

/* Finds the vdso pages, and what is to be unmapped (`rest`). Returns the count of `rest`. */
static unsigned find_ranges(uint64_t end, struct range *specials, struct range *rest)
{
    static char maps[MAPS_MAX];
    size_t size = read_maps(maps);
    unsigned count = 0;
    for (const char *line = maps, *next; line < maps + size; line = next) {
        const char *stop = line;
        while (stop < maps + size && *stop != '\n')
            stop++;
        next = stop + 1;
        struct range range = { .start = read_hex(&line) };
        line++;
        range.end = read_hex(&line);
        bool is_special = range.start >> 63; /* [vsyscall]: the same in every process */
        for (unsigned i = 0; i < IMAGE_SPECIALS && !is_special; i++)
            if ((is_special = ends_with(line, stop, image_specials[i])))
                specials[i] = range;
        bool is_self = range.start >= IMAGE_RESTORE_FROM && range.end <= end;
        if (is_special || is_self)
            continue;
        if (count == RANGES_MAX)
            give_up("has too many mappings in /proc/self/maps", NULL, 0);
        rest[count++] = range;
    }
    return count;
}

static void move(uint64_t from, uint64_t to, uint64_t bytes, const char *name)
{
    long at = kernel(SYS_mremap, (long) from, (long) bytes, (long) bytes,
                     MREMAP_MAYMOVE | MREMAP_FIXED, (long) to);
    if (kernel_failed(at))
        give_up("cannot move", name, -at);
}

/* Moves each in two steps, since another of them may still lie at its new place. */
static void move_specials(const struct image_head *head, const struct range *now)
{
    uint64_t waits[IMAGE_SPECIALS], at = WAITING_FROM;
    for (unsigned i = 0; i < IMAGE_SPECIALS; i++) {
        uint64_t bytes = now[i].end - now[i].start;
        if (bytes != head->specials[i].end - head->specials[i].start)
            give_up("the image is of another kernel, by the size of", image_specials[i], 0);
        waits[i] = at;
        if (bytes > 0)
            move(now[i].start, at, bytes, image_specials[i]);
        at += bytes;
    }
    for (unsigned i = 0; i < IMAGE_SPECIALS; i++)
        if (now[i].end > now[i].start)
            move(waits[i], head->specials[i].start, now[i].end - now[i].start, image_specials[i]);
}

/* The break of this process lies far from the heap of the restored program. A page mapped behind it
 * makes brk(2) fail, and malloc() uses mmap(2) instead (interpreter/image/state.c). */
static void close_break(uint64_t page)
{
    uint64_t at = (uint64_t) kernel(SYS_brk, 0);
    at = (at + page - 1) & ~(page - 1);
    long result = kernel(SYS_mmap, (long) at, (long) page, PROT_NONE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (kernel_failed(result) || at < IMAGE_RESTORE_FROM || at + page > WAITING_FROM)
        give_up("cannot map the page behind its break", NULL, kernel_failed(result) ? -result : 0);
}

void clear_space(const struct plan *plan, uint64_t end)
{
    static struct range rest[RANGES_MAX];
    struct range specials[IMAGE_SPECIALS] = { { 0 } };
    unsigned count = find_ranges(end, specials, rest);
    for (unsigned i = 0; i < count; i++) {
        long result =
            kernel(SYS_munmap, (long) rest[i].start, (long) (rest[i].end - rest[i].start));
        if (kernel_failed(result))
            give_up("cannot unmap its memory", NULL, -result);
    }
    move_specials(&plan->head, specials);
    close_break(plan->head.page);
}

/* Refuses a file of the template that has changed: code and data of two versions would be mixed. */
static void compare_file(const struct image_area *area, const char *name, long file)
{
    struct stat now = { 0 };
    long result = kernel(SYS_fstat, file, (long) &now);
    if (kernel_failed(result))
        give_up("cannot read the attributes of", name, -result);
    if (area->kind == IMAGE_OPEN) {
        if (!S_ISREG(now.st_mode) || (uint64_t) now.st_size < area->size)
            give_up("a mapped file has become smaller:", name, 0);
        return;
    }
    int64_t changed = (int64_t) now.st_ctim.tv_sec * 1000000000 + now.st_ctim.tv_nsec;
    if (now.st_dev != area->device || now.st_ino != area->inode ||
        (uint64_t) now.st_size != area->size || changed != area->changed_ns)
        give_up("this file has changed since the image was taken:", name, 0);
}

/* Gives the area's file. Neighbouring areas mostly map the same one, so the last file stays open;
 * area NULL closes it. */
static long file_of(const struct plan *plan, const struct image_area *area)
{
    static long file = -1;
    static struct {
        uint32_t name, kind, writes;
    } last;
    bool writes = area && area->kind == IMAGE_OPEN && (area->protect & PROT_WRITE);
    if (file >= 0 && area && last.name == area->name && last.kind == area->kind &&
        last.writes == writes)
        return file;
    if (file >= 0)
        (void) kernel(SYS_close, file);
    file = -1;
    if (!area)
        return file;
    const char *name = plan->names + area->name;
    file = kernel(SYS_openat, AT_FDCWD, (long) name,
                  (writes ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (kernel_failed(file))
        give_up("cannot open", name, -file);
    compare_file(area, name, file);
    last.name = area->name;
    last.kind = area->kind;
    last.writes = writes;
    return file;
}

static long object_of(const struct image_area *area, int32_t *objects)
{
    static uint64_t sizes[IMAGE_OBJECTS_MAX];
    int32_t *file = &objects[area->object];
    if (*file < 0) {
        long made = kernel(SYS_memfd_create, (long) "shared", 1 /* MFD_CLOEXEC */);
        if (kernel_failed(made))
            give_up("cannot make shared memory", NULL, -made);
        *file = (int32_t) made;
    }
    if (sizes[area->object] < area->size) {
        long result = kernel(SYS_ftruncate, *file, (long) area->size);
        if (kernel_failed(result))
            give_up("cannot make shared memory", NULL, -result);
        sizes[area->object] = area->size;
    }
    return *file;
}

static void map_area(const struct plan *plan, const struct image_area *area, int32_t *objects)
{
    long protect = area->is_filled ? PROT_READ | PROT_WRITE : area->protect;
    long flags = MAP_FIXED_NOREPLACE, file = -1;
    const char *name = NULL;
    switch ((enum image_kind) area->kind) {
    case IMAGE_MEMORY:
        flags |= MAP_PRIVATE | MAP_ANONYMOUS;
        break;
    case IMAGE_STACK:
        flags |= MAP_PRIVATE | MAP_ANONYMOUS | MAP_GROWSDOWN | MAP_STACK;
        break;
    case IMAGE_SHARED:
        flags |= MAP_SHARED;
        file = object_of(area, objects);
        break;
    case IMAGE_FILE:
        flags |= MAP_PRIVATE;
        file = file_of(plan, area);
        name = plan->names + area->name;
        break;
    case IMAGE_OPEN:
        flags |= MAP_SHARED;
        file = file_of(plan, area);
        name = plan->names + area->name;
        break;
    }
    if (!(area->protect & PROT_WRITE) && !area->is_filled)
        flags |= MAP_NORESERVE; /* address space that is reserved, not memory that is used */
    long at = kernel(SYS_mmap, (long) area->start, (long) (area->end - area->start), protect, flags,
                     file, file < 0 ? 0 : (long) area->offset);
    if (kernel_failed(at) || (uint64_t) at != area->start)
        give_up("cannot map memory of", name ? name : "no file", kernel_failed(at) ? -at : EEXIST);
}

void map_areas(const struct plan *plan, int32_t *objects)
{
    for (unsigned i = 0; i < IMAGE_OBJECTS_MAX; i++)
        objects[i] = -1;
    for (unsigned i = 0; i < plan->head.areas; i++)
        map_area(plan, &plan->areas[i], objects);
    (void) file_of(plan, NULL);
}

void protect_areas(const struct plan *plan)
{
    for (unsigned i = 0; i < plan->head.areas; i++) {
        const struct image_area *area = &plan->areas[i];
        if (!area->is_filled || area->protect == (PROT_READ | PROT_WRITE))
            continue;
        long result = kernel(SYS_mprotect, (long) area->start, (long) (area->end - area->start),
                             area->protect);
        if (kernel_failed(result))
            give_up("cannot protect memory", NULL, -result);
    }
}
