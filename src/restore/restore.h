/* restore.h - the parts of glovebox-restore, a program without a C library. */
#pragma once

#include "contract/image.h"

#include <stddef.h>

/* The plan of the address space: what an image holds before the contents of memory. */
struct plan {
    struct image_head head;
    struct image_area areas[IMAGE_AREAS_MAX];
    char names[IMAGE_NAMES_MAX];
};

/* Prints one line, `what about (error os)`, and exits. `about` may be NULL, `os` 0. */
_Noreturn void give_up(const char *what, const char *about, long os);

/* Reads exactly `bytes` bytes of the image. */
void image_read(void *into, size_t bytes);

/* Say what is wrong with a head, and with the plan as a whole; NULL if nothing is. They only
 * compare numbers, so that a test can call them with any input. */
const char *head_fault(const struct image_head *head);
const char *plan_fault(const struct plan *plan);

/* The runs that have been checked: area and end of the last one, bytes of all. */
struct progress {
    unsigned area;
    uint64_t end;
    uint64_t bytes;
};

/* Says what is wrong with the next run, NULL if nothing is; runs must ascend. */
const char *run_fault(const struct plan *plan, struct progress *progress,
                      const struct image_run *run);

/* Unmaps all but this program, which ends at `end`, and moves the vdso to the image's place. */
void clear_space(const struct plan *plan, uint64_t end);

/* Called in this order: map the areas of the plan, read the runs into them, set their final
 * protection. `objects` receives IMAGE_OBJECTS_MAX descriptors of shared memory, -1 if unused. */
void map_areas(const struct plan *plan, int32_t *objects);
void fill_areas(const struct plan *plan);
void protect_areas(const struct plan *plan);
