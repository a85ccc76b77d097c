/* restore.h - the parts of glovebox-restore, a program without a C library. */
#pragma once

#include "contract/image.h"

#include <stddef.h>

/* What was read of the image before its bytes: the plan of the address space. */
struct plan {
    struct image_head head;
    struct image_area areas[IMAGE_AREAS_MAX];
    char names[IMAGE_NAMES_MAX];
};

/* Says in one line what is wrong, about what (NULL: nothing) and the errno behind it (0: none). */
_Noreturn void give_up(const char *what, const char *about, long os);

/* Reads exactly so many bytes of the image. */
void image_read(void *into, size_t bytes);

/* What is wrong with a head, and with the plan as a whole, in words; NULL if nothing is. Looks at
 * numbers and touches nothing else, so that it can be tried with anything. */
const char *head_fault(const struct image_head *head);
const char *plan_fault(const struct plan *plan);

/* How far the runs have come: in which area the last one lay, where it ended, the bytes of all. */
struct progress {
    unsigned area;
    uint64_t end;
    uint64_t bytes;
};

/* The same for a run, which comes after those before it. */
const char *run_fault(const struct plan *plan, struct progress *progress,
                      const struct image_run *run);

/* Everything that the kernel gave this process goes, but the program itself, which ends at `end`;
 * the kernel's own pages go where the image had them. */
void clear_space(const struct plan *plan, uint64_t end);

/* Makes the address space of the plan; then reads the batches of runs into it; then sets its final
 * protection. Gives the descriptors of shared memory, IMAGE_OBJECTS_MAX of them, -1 if unused. */
void map_areas(const struct plan *plan, int32_t *objects);
void fill_areas(const struct plan *plan);
void protect_areas(const struct plan *plan);
