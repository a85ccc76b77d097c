/* rseq.c - see rseq.h. */
#include "interpreter/image/rseq.h"

#include <dlfcn.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined __x86_64__
#include <asm/prctl.h>
#define SIGNATURE 0x53053053U /* of glibc: sys/rseq.h */
#else
#define SIGNATURE 0xd428bc00U
#endif

enum { SIZE = 32 }; /* the size that glibc registers, and every kernel accepts */

void *thread_pointer(void)
{
    void *pointer = NULL;
#if defined __x86_64__
    (void) syscall(SYS_arch_prctl, ARCH_GET_FS, &pointer);
#else
    __asm__ volatile("mrs %0, tpidr_el0" : "=r"(pointer));
#endif
    return pointer;
}

void *rseq_find(void)
{
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size"); /* glibc 2.35 */
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");
    return size && offset && *size > 0 ? (char *) thread_pointer() + *offset : NULL;
}

int rseq_register(void *place)
{
    return place ? (int) syscall(SYS_rseq, place, SIZE, 0, SIGNATURE) : 0;
}
