/* image_fuzz.c - any plan of an image: what is accepted lies in user space, in order, apart from
 * glovebox-restore and from the kernel's pages, its names end, and bytes belong to one piece. */
#include "dice.h"

#include "restore/restore.h"

#include <sys/mman.h>

enum { PAGE = 4096, AREAS = 6, RUNS = 16 };

static struct plan plan;

static const struct image_area right[AREAS] = {
    { 0x10000, 0x20000, 0, IMAGE_FILE, PROT_READ | PROT_EXEC, 0, 0, 1, 7, 8, 9, 10 },
    { 0x20000, 0x60000, 0, IMAGE_MEMORY, PROT_READ | PROT_WRITE, 1, 0, 0, 0, 0, 0, 0 },
    { 0x70000, 0x90000, 0, IMAGE_SHARED, PROT_READ | PROT_WRITE, 1, 3, 0, 0, 0, 0x20000, 0 },
    { 0x90000, 0xa0000, PAGE, IMAGE_OPEN, PROT_READ, 0, 0, 6, 0, 0, 0x20000, 0 },
    { 0x7ffff000000, 0x7ffff100000, 0, IMAGE_MEMORY, PROT_NONE, 0, 0, 0, 0, 0, 0, 0 },
    { 0x7ffff200000, 0x7ffff300000, 0, IMAGE_STACK, PROT_READ | PROT_WRITE, 1, 0, 0, 0, 0, 0, 0 },
};

static void make_right(void)
{
    static const char names[] = "\0/lib\0/data";
    plan.head = (struct image_head){
        .magic = IMAGE_MAGIC,
        .version = IMAGE_VERSION,
        .machine = IMAGE_MACHINE,
        .page = PAGE,
        .areas = AREAS,
        .names = sizeof names,
        .runs = RUNS,
        .bytes = 64 * PAGE,
        .resume = 0x10100,
        .stack = 0x7ffff280000,
        .thread = 0x20800,
        .specials = { { 0x7ffff400000, 0x7ffff404000 }, { 0 }, { 0x7ffff404000, 0x7ffff406000 } },
    };
    memcpy(plan.areas, right, sizeof right);
    memcpy(plan.names, names, sizeof names);
}

static void check_areas(void)
{
    uint64_t last = 0;
    assert(plan.head.areas > 0 && plan.head.areas <= IMAGE_AREAS_MAX);
    assert(memchr(plan.names, 0, plan.head.names) && plan.names[plan.head.names - 1] == 0);
    for (unsigned i = 0; i < plan.head.areas; i++) {
        const struct image_area *area = &plan.areas[i];
        assert(area->start >= last && area->start < area->end && area->start >= PAGE);
        assert(area->end < UINT64_C(1) << 48 && (area->start | area->end) % plan.head.page == 0);
        assert(area->end <= IMAGE_RESTORE_FROM || area->start >= IMAGE_RESTORE_TO);
        for (unsigned k = 0; k < IMAGE_SPECIALS; k++)
            assert(area->end <= plan.head.specials[k].start ||
                   area->start >= plan.head.specials[k].end);
        assert(area->kind >= IMAGE_MEMORY && area->kind <= IMAGE_OPEN);
        assert(area->object < IMAGE_OBJECTS_MAX || area->kind != IMAGE_SHARED);
        assert(area->name < plan.head.names);
        last = area->end;
    }
}

static void check_runs(struct dice *dice)
{
    struct progress at = { 0 };
    uint64_t sum = 0;
    for (unsigned i = 0; i < RUNS && dice->left > 0; i++) {
        struct image_run run = { at.end + (uint64_t) dice_byte(dice) % 4 * PAGE,
                                 (uint64_t) dice_byte(dice) % 8 * PAGE };
        if (i == 0)
            run.start = plan.areas[dice_byte(dice) % plan.head.areas].start;
        dice_change(dice, &run, sizeof run);
        uint64_t before = at.end;
        if (run_fault(&plan, &at, &run))
            return;
        sum += run.bytes;
        const struct image_area *area = &plan.areas[at.area];
        assert(run.start >= before && run.start >= area->start && run.bytes > 0);
        assert(run.start + run.bytes <= area->end && run.start + run.bytes > run.start);
        assert(area->is_filled && area->kind != IMAGE_OPEN && sum <= plan.head.bytes);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dice dice = { data, size };
    make_right();
    assert(!head_fault(&plan.head) && !plan_fault(&plan));
    dice_change(&dice, &plan.head, sizeof plan.head);
    dice_change(&dice, plan.areas, sizeof right);
    dice_change(&dice, plan.names, 16);
    if (head_fault(&plan.head) || plan_fault(&plan))
        return 0;
    check_areas();
    check_runs(&dice);
    return 0;
}
