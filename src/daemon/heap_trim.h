/* heap_trim.h - gives memory of ended sessions back to the kernel.
 *
 * malloc returns only what is free at the end of its heap, and one small block there keeps all of
 * it. malloc_trim(3) also returns whole free pages between blocks. It takes up to some milliseconds
 * and those pages must be cleared again when they are used, so it is called only after a peak. */
#pragma once

#include <uv.h>

/* Looks every five seconds what is resident and not in use. */
void heap_trim_open(uv_loop_t *loop);
void heap_trim_close(void);
