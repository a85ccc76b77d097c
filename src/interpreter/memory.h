/* memory.h - what a zygote does to its memory so that forks are cheap. */
#pragma once

#include "base/error.h"

#include <stdint.h>

/* Moves private anonymous memory into 2 MB pages: a fork copies page tables, and one entry then
 * stands for 512. Then lays out fresh heap for the children, in small pages. Since Linux 6.1,
 * madvise(2) MADV_COLLAPSE; before, nothing is moved. */
void memory_settle(void);

/* Takes every free piece between the live ones, for good. Otherwise the children's allocations
 * would fill them, each copying another page; so they come side by side from fresh memory. */
void memory_fill_holes(void);

uint64_t memory_resident(void); /* bytes, 0 if unknown */

/* A mount namespace of the zygote's own, with memory at /tmp and /home/user: some imports need a
 * place to write (matplotlib). Its children leave it behind. */
int memory_mount_scratch(error *err);
