/* heap_trim.h - gives memory of ended sessions and large results back to the kernel.
 *
 * malloc returns only what is free at the end of its heap, and one small block there keeps all of
 * it. malloc_trim(3) also returns whole free pages between blocks. It takes up to some milliseconds
 * and those pages must be cleared again when they are used, so it is called only after a peak. */
#pragma once

#include <uv.h>

/* Before there are threads. */
void heap_prepare(void);

/* Looks every five seconds what is resident and not in use, and trims if three looks in a row find
 * a peak: large results that follow each other find memory that is cleared. */
void heap_trim_open(uv_loop_t *loop);
void heap_trim_close(void);
