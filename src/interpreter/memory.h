/* memory.h - prepares a zygote's memory so that forks are cheap. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Moves private anonymous memory into 2 MB pages: a fork copies page tables, where one entry then
 * replaces 512. Then reserves unused heap for the children, in small pages. Needs Linux 6.1,
 * madvise(2) MADV_COLLAPSE; before that, nothing is moved. */
void memory_settle(void);

/* Allocates every free block between used ones, for good. Otherwise allocations of the children
 * would use these, and each would copy another page; now they lie side by side in unused memory. */
void memory_fill_holes(void);

uint64_t memory_resident(void); /* bytes, 0 if unknown */

/* Makes a mount namespace for the zygote, with tmpfs at /tmp and /home/user: some imports need to
 * write files (matplotlib). Its children leave this namespace. */
int memory_mount_scratch(error *err);
