/* syscalls.h - system calls and jumps, in assembly. This program has no C library: one would set a
 * thread pointer, a heap and an rseq area, which must be those of the restored program. */
#pragma once

#include <stdint.h>
#include <sys/syscall.h>

#if defined __x86_64__

static inline long kernel_call(long number, const long a[6])
{
    register long d __asm__("r10") = a[3];
    register long e __asm__("r8") = a[4];
    register long f __asm__("r9") = a[5];
    long result;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(d), "r"(e), "r"(f)
                     : "rcx", "r11", "memory");
    return result;
}

/* Sets the thread pointer. Returns 0 or -errno. */
static inline long kernel_set_thread(uint64_t thread)
{
    enum { SET_FS = 0x1002 }; /* arch_prctl(2), ARCH_SET_FS */
    return kernel_call(SYS_arch_prctl, (long[6]){ SET_FS, (long) thread });
}

/* Jumps to `place` with this stack, as a call of a function with two arguments. */
_Noreturn static inline void kernel_jump(uint64_t place, uint64_t stack, uint64_t first,
                                         uint64_t second)
{
    __asm__ volatile("mov %1, %%rsp\n\txor %%ebp, %%ebp\n\tpush $0\n\tjmp *%0"
                     :
                     : "r"(place), "r"(stack), "D"(first), "S"(second)
                     : "memory");
    __builtin_unreachable();
}

#elif defined __aarch64__

static inline long kernel_call(long number, const long a[6])
{
    register long n __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc #0"
                     : "+r"(x0)
                     : "r"(n), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                     : "memory");
    return x0;
}

static inline long kernel_set_thread(uint64_t thread)
{
    __asm__ volatile("msr tpidr_el0, %0" : : "r"(thread) : "memory");
    return 0;
}

_Noreturn static inline void kernel_jump(uint64_t place, uint64_t stack, uint64_t first,
                                         uint64_t second)
{
    register uint64_t x0 __asm__("x0") = first;
    register uint64_t x1 __asm__("x1") = second;
    register uint64_t to __asm__("x16") = place;
    __asm__ volatile("mov sp, %1\n\tmov x29, #0\n\tmov x30, #0\n\tbr %0"
                     :
                     : "r"(to), "r"(stack), "r"(x0), "r"(x1)
                     : "memory");
    __builtin_unreachable();
}

#else
#error "this processor is not supported"
#endif

/* kernel(SYS_x, arguments…): the result, or -errno. */
#define kernel(number, ...) kernel_call((number), (const long[6]){ __VA_ARGS__ })

static inline int kernel_failed(long result)
{
    return result < 0 && result > -4096;
}
