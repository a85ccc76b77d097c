/* rseq.h - restartable sequences (rseq(2)): memory in which the kernel tells a thread its
 * processor. The C library registers it once; a restored process has to do so again. */
#pragma once

/* The rseq area of this thread, NULL if the C library has none. Uses dlsym(3), so it cannot be
 * called between fork and exec. */
void *rseq_find(void);

/* Registers it (again). Returns 0, or -1 with errno. NULL: does nothing. */
int rseq_register(void *place);

/* The thread pointer, to which the offset of the rseq area is added. */
void *thread_pointer(void);
