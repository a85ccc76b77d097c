/* main.c - glovebox-restore: becomes the process that an image was taken of (contract/image.h).
 *
 * It runs with the rights of the restored program and no others. The last step jumps into that
 * program, which unmaps glovebox-restore (interpreter/image/image.c) and restores its own signals,
 * limits and descriptors (interpreter/image/state.c). */
#include "restore/restore.h"
#include "restore/syscalls.h"

#include <signal.h>

enum { STACK_BYTES = 64 << 10 };

extern const char __executable_start[], _end[]; /* set by the linker: bounds of this program */

char restore_stack[STACK_BYTES] __attribute__((aligned(16)));
static struct plan plan;
static int32_t objects[IMAGE_OBJECTS_MAX];

/* Switches to restore_stack: the stack that the kernel made is unmapped by clear_space(). */
#if defined __x86_64__
__asm__(".globl _start\n_start:\n\tlea restore_stack+65536(%rip), %rsp\n\txor %ebp, %ebp\n\t"
        "call restore\n\thlt");
#else
__asm__(".globl _start\n_start:\n\tadrp x1, restore_stack\n\t"
        "add x1, x1, :lo12:restore_stack\n\tadd x1, x1, #16, lsl #12\n\tmov sp, x1\n\t"
        "mov x29, #0\n\tbl restore");
#endif
_Static_assert(STACK_BYTES == 65536, "_start has this number in assembly");

void give_up(const char *what, const char *about, long os)
{
    static char line[512];
    size_t at = 0;
    const char *const parts[] = { "glovebox-restore: ", what, about ? " " : "",
                                  about ? about : "" };
    for (unsigned i = 0; i < sizeof parts / sizeof *parts; i++)
        for (const char *c = parts[i]; *c && at < sizeof line - 32; c++)
            if (*c < ' ')
                line[at++] = '?';
            else
                line[at++] = *c;
    if (os > 0 && os < 1000) {
        const char *const word = " (error ";
        for (const char *c = word; *c; c++)
            line[at++] = *c;
        for (long unit = os >= 100 ? 100 : os >= 10 ? 10 : 1; unit > 0; unit /= 10)
            line[at++] = (char) ('0' + os / unit % 10);
        line[at++] = ')';
    }
    line[at++] = '\n';
    (void) kernel(SYS_write, 2, (long) line, (long) at);
    for (;;)
        (void) kernel(SYS_exit_group, IMAGE_EXIT_FAILED);
}

static void block_signals(void)
{
    uint64_t all = ~UINT64_C(0);
    long result = kernel(SYS_rt_sigprocmask, SIG_SETMASK, (long) &all, 0, sizeof all);
    if (kernel_failed(result))
        give_up("cannot block signals", NULL, -result);
}

static void read_plan(void)
{
    image_read(&plan.head, sizeof plan.head);
    struct image_none none;
    memcpy(&none, &plan.head, sizeof none);
    none.why[sizeof none.why - 1] = '\0';
    if (memcmp(none.magic, IMAGE_NONE, sizeof none.magic) == 0)
        give_up("there is no image:", none.why, 0);
    const char *fault = head_fault(&plan.head);
    if (fault)
        give_up("cannot restore this image:", fault, 0);
    image_read(plan.areas, plan.head.areas * sizeof plan.areas[0]);
    image_read(plan.names, plan.head.names);
    fault = plan_fault(&plan);
    if (fault)
        give_up("cannot restore this image:", fault, 0);
}

_Noreturn void restore(void);
_Noreturn void restore(void)
{
    if ((uint64_t) __executable_start != IMAGE_RESTORE_FROM)
        give_up("was linked to a wrong address", NULL, 0);
    block_signals();
    (void) kernel(SYS_close_range, IMAGE_FD_IMAGE + 1, ~0U, 0);
    read_plan();
    uint64_t page = plan.head.page, end = ((uint64_t) _end + page - 1) & ~(page - 1);
    clear_space(&plan, end);
    map_areas(&plan, objects);
    fill_areas(&plan);
    protect_areas(&plan);
    (void) kernel(SYS_close, IMAGE_FD_IMAGE);
    long result = kernel_set_thread(plan.head.thread);
    if (kernel_failed(result))
        give_up("cannot set the thread pointer", NULL, -result);
    kernel_jump(plan.head.resume, plan.head.stack, end, (uint64_t) objects);
}
