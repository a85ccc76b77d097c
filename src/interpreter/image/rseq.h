/* rseq.h - restartable sequences (rseq(2)): where the kernel tells a thread on which processor it
 * is. The C library registers the place once, and believes for ever that it stands. */
#pragma once

/* The place of this thread, NULL if the C library has none. Asks the dynamic linker: not between
 * fork and exec. */
void *rseq_find(void);

/* Says it to the kernel (again). Returns 0, or -1 with errno. Nothing for NULL. */
int rseq_register(void *place);

/* The thread pointer, which the place is counted from. */
void *thread_pointer(void);
