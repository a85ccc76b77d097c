/* plan.c - checks every number of an image before it is used: can this address space be made? */
#include "restore/restore.h"

#include <stdbool.h>
#include <sys/mman.h>

/* The addresses that every program can use: 47 bits on x86-64, less one page that the kernel keeps
 * free; 48 bits on aarch64. vm.mmap_min_addr forbids the lowest page. */
#if defined __aarch64__
#define USER_TO (UINT64_C(1) << 48)
#else
#define USER_TO ((UINT64_C(1) << 47) - 4096)
#endif

enum { USER_FROM = 4096, SPECIAL_MAX = 1 << 20 };

#define OBJECT_MAX (UINT64_C(1) << 40)

static bool is_range(uint64_t start, uint64_t end, uint64_t page)
{
    return start % page == 0 && end % page == 0 && start >= USER_FROM && start < end &&
           end <= USER_TO;
}

static bool overlaps(uint64_t start, uint64_t end, uint64_t from, uint64_t to)
{
    return start < to && from < end;
}

static bool is_ours(uint64_t start, uint64_t end)
{
    return overlaps(start, end, IMAGE_RESTORE_FROM, IMAGE_RESTORE_TO);
}

static const char *special_fault(const struct image_head *head)
{
    for (unsigned i = 0; i < IMAGE_SPECIALS; i++) {
        const struct image_special *one = &head->specials[i];
        if (one->start == 0 && one->end == 0)
            continue;
        if (!is_range(one->start, one->end, head->page) || one->end - one->start > SPECIAL_MAX ||
            is_ours(one->start, one->end))
            return "the vdso pages have invalid addresses";
        for (unsigned other = 0; other < i; other++)
            if (overlaps(one->start, one->end, head->specials[other].start,
                         head->specials[other].end))
                return "the vdso pages overlap";
    }
    return NULL;
}

const char *head_fault(const struct image_head *head)
{
    if (memcmp(head->magic, IMAGE_MAGIC, sizeof head->magic) != 0)
        return "it is not an image";
    if (head->version != IMAGE_VERSION)
        return "its format has another version";
    uint32_t page = head->page; /* if it is not the kernel's, mmap(2) fails later */
    if (head->machine != IMAGE_MACHINE || page < 4096 || page > 65536 || (page & (page - 1)) != 0)
        return "it is an image of another machine";
    if (head->areas == 0 || head->areas > IMAGE_AREAS_MAX)
        return "it has no memory areas, or too many";
    if (head->names == 0 || head->names > IMAGE_NAMES_MAX)
        return "it has no names, or too many";
    if (head->bytes % page != 0 || head->runs > head->bytes / page)
        return "its contents are not whole pages";
    return special_fault(head);
}

static const char *file_fault(const struct plan *plan, const struct image_area *area)
{
    bool needs_name = area->kind == IMAGE_FILE || area->kind == IMAGE_OPEN;
    if (area->name >= plan->head.names || (area->name != 0) != needs_name)
        return "a file has no name";
    if (needs_name && plan->names[area->name] != '/')
        return "a file's path is not absolute";
    if (area->offset % plan->head.page != 0 || area->offset > (UINT64_C(1) << 62))
        return "a file's offset is not at a page boundary";
    if (area->kind == IMAGE_SHARED &&
        (area->object >= IMAGE_OBJECTS_MAX || area->size > OBJECT_MAX || area->offset > area->size))
        return "shared memory is too large";
    if (area->kind == IMAGE_OPEN && area->is_filled)
        return "it has contents for a shared file";
    return NULL;
}

static const char *area_fault(const struct plan *plan, const struct image_area *area)
{
    const struct image_head *head = &plan->head;
    if (!is_range(area->start, area->end, head->page))
        return "memory lies outside of the address space of programs";
    if (is_ours(area->start, area->end))
        return "memory overlaps that of glovebox-restore";
    for (unsigned i = 0; i < IMAGE_SPECIALS; i++)
        if (overlaps(area->start, area->end, head->specials[i].start, head->specials[i].end))
            return "memory overlaps the vdso pages";
    if (area->kind < IMAGE_MEMORY || area->kind > IMAGE_OPEN || area->is_filled > 1 ||
        (area->protect & ~(PROT_READ | PROT_WRITE | PROT_EXEC)) != 0)
        return "memory has an unknown kind or protection";
    return file_fault(plan, area);
}

const char *plan_fault(const struct plan *plan)
{
    const struct image_head *head = &plan->head;
    uint64_t last = 0;
    bool can_resume = false, has_stack = false, has_thread = false;
    if (plan->names[0] != '\0' || plan->names[head->names - 1] != '\0')
        return "a name does not end with NUL";
    for (unsigned i = 0; i < head->areas; i++) {
        const struct image_area *area = &plan->areas[i];
        const char *fault = area_fault(plan, area);
        if (fault)
            return fault;
        if (area->start < last)
            return "memory areas overlap";
        last = area->end;
        can_resume |=
            (area->protect & PROT_EXEC) && head->resume >= area->start && head->resume < area->end;
        has_stack |= area->kind == IMAGE_STACK && (area->protect & PROT_WRITE) &&
                     head->stack % 16 == 0 && head->stack > area->start + head->page &&
                     head->stack < area->end;
        has_thread |=
            (area->protect & PROT_WRITE) && head->thread >= area->start && head->thread < area->end;
    }
    return can_resume && has_stack && has_thread ? NULL : "it has no valid point to resume at";
}

const char *run_fault(const struct plan *plan, struct progress *progress,
                      const struct image_run *run)
{
    static const char fault[] = "the image has contents that fit no memory area";
    const struct image_head *head = &plan->head;
    if (run->start % head->page != 0 || run->bytes == 0 || run->bytes % head->page != 0 ||
        run->start < progress->end || run->bytes > head->bytes - progress->bytes)
        return fault;
    while (progress->area < head->areas && plan->areas[progress->area].end <= run->start)
        progress->area++;
    if (progress->area == head->areas)
        return fault;
    const struct image_area *area = &plan->areas[progress->area];
    if (!area->is_filled || run->start < area->start || run->bytes > area->end - run->start)
        return fault;
    progress->end = run->start + run->bytes;
    progress->bytes += run->bytes;
    return NULL;
}
