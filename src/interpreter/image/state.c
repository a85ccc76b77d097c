/* state.c - saves and restores state of a process in the kernel and in the C library. */
#include "interpreter/image/image_parts.h"

#include "base/read_at.h"
#include "interpreter/image/rseq.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if !defined __x86_64__
#include <sys/auxv.h>
#endif

/* The C library stores the thread id near the list of robust mutexes (glibc, nptl/descr.h). It is
 * found by its value here; state_note() checks that the child's id is there after fork(2). */
static int find_thread_id(struct state *state, error *err)
{
    enum { AROUND = 8 };
    if (syscall(SYS_get_robust_list, 0, &state->robust_list, &state->robust_size) < 0)
        return fail_os(err, "find the list of robust mutexes");
    pid_t own = gettid();
    state->thread_id = NULL;
    for (pid_t *word = (pid_t *) state->robust_list - AROUND;
         state->robust_list && word < (pid_t *) state->robust_list; word++)
        if (*word == own) {
            if (state->thread_id)
                return fail(err, ERR_UNAVAILABLE, "the thread id is found in two places");
            state->thread_id = word;
        }
    if (!state->thread_id)
        return fail(err, ERR_UNAVAILABLE, "this C library stores its thread id elsewhere");
    return 0;
}

/* execve(2) resets both, and they cannot be restored. */
static int refuse_processor(error *err)
{
#if defined __x86_64__
    enum { SHADOW_STACK_STATUS = 0x5005 }; /* arch_prctl(2) */
    unsigned long status = 0;
    if (syscall(SYS_arch_prctl, SHADOW_STACK_STATUS, &status) == 0 && (status & 1))
        return fail(err, ERR_UNAVAILABLE, "a shadow stack cannot be restored");
#else
    enum { SIGNS_ADDRESSES = 1 << 30 }; /* HWCAP_PACA */
    if (getauxval(AT_HWCAP) & SIGNS_ADDRESSES)
        return fail(err, ERR_UNAVAILABLE, "pointer authentication keys cannot be restored");
#endif
    return 0;
}

int state_look(struct state *state, error *err)
{
    if (refuse_processor(err) < 0 || find_thread_id(state, err) < 0)
        return -1;
    state->brk = dlsym(RTLD_DEFAULT, "__curbrk");
    if (!state->brk)
        return fail(err, ERR_UNAVAILABLE, "this C library stores its break elsewhere");
    state->rseq = rseq_find();
    char text[4096];
    (void) read_text_at(AT_FDCWD, "/proc/self/status", text, sizeof text);
    const char *threads = strstr(text, "\nThreads:\t");
    state->threads = threads ? (unsigned) strtoul(threads + 10, NULL, 10) : 1;
    return 0;
}

static void note_features(struct state *state)
{
    state->features = 0;
#if defined __x86_64__
    enum { GET_PERMITTED = 0x1022 }; /* arch_prctl(2), ARCH_GET_XCOMP_PERM */
    if (syscall(SYS_arch_prctl, GET_PERMITTED, &state->features) < 0)
        state->features = 0;
#endif
}

static void put_back_features(const struct state *state)
{
#if defined __x86_64__
    enum { ASK = 0x1023, TILES = 18 }; /* ARCH_REQ_XCOMP_PERM, XTILEDATA: the only such feature */
    if (state->features & (1UL << TILES))
        (void) syscall(SYS_arch_prctl, ASK, TILES);
#else
    (void) state;
#endif
}

int state_note(struct state *state, error *err)
{
    if (*state->thread_id != gettid())
        return fail(err, ERR_UNAVAILABLE, "the thread id is not stored where it was found");
    for (int i = 1; i <= STATE_SIGNALS; i++)
        if (syscall(SYS_rt_sigaction, i, NULL, state->signals[i - 1], 8) < 0)
            return fail_os(err, "note signal %d", i);
    if (sigaltstack(NULL, &state->other_stack) < 0)
        return fail_os(err, "note the stack of signals");
    for (int i = 0; i < RLIM_NLIMITS; i++)
        if (getrlimit((__rlimit_resource_t) i, &state->limits[i]) < 0)
            return fail_os(err, "note limit %d", i);
    if (syscall(SYS_get_robust_list, 0, &state->robust_list, &state->robust_size) < 0)
        return fail_os(err, "note the list of robust mutexes");
    note_features(state);
    state->umask = umask(0);
    (void) prctl(PR_GET_NAME, state->name);
    if (syscall(SYS_getcwd, state->folder, sizeof state->folder) < 0 || state->folder[0] != '/')
        state->folder[0] = '\0';
    return 0;
}

/* First of all, since functions of the C library rely on them. */
static int put_back_thread(const struct state *state, error *err)
{
    *state->brk = NULL;
    *state->thread_id = (pid_t) syscall(SYS_set_tid_address, state->thread_id);
    if (syscall(SYS_set_robust_list, state->robust_list, state->robust_size) < 0)
        return fail_os(err, "put back the list of robust mutexes");
    if (rseq_register(state->rseq) < 0)
        return fail_os(err, "put back restartable sequences");
    return 0;
}

static int put_back_signals(const struct state *state, error *err)
{
    for (int i = 1; i <= STATE_SIGNALS; i++)
        if (i != SIGKILL && i != SIGSTOP &&
            syscall(SYS_rt_sigaction, i, state->signals[i - 1], NULL, 8) < 0)
            return fail_os(err, "put back signal %d", i);
    stack_t other = state->other_stack;
    other.ss_flags &= ~SS_ONSTACK;
    if (sigaltstack(&other, NULL) < 0)
        return fail_os(err, "put back the stack of signals");
    return 0;
}

/* Sets the soft limits of the original, at most to the hard limits of this process. */
int state_put_back_limits(const struct state *state, error *err)
{
    for (int i = 0; i < RLIM_NLIMITS; i++) {
        struct rlimit now;
        if (getrlimit((__rlimit_resource_t) i, &now) < 0)
            return fail_os(err, "look at limit %d", i);
        rlim_t wanted = state->limits[i].rlim_cur;
        wanted = wanted < now.rlim_max ? wanted : now.rlim_max;
        if (wanted == now.rlim_cur)
            continue;
        now.rlim_cur = wanted;
        if (setrlimit((__rlimit_resource_t) i, &now) < 0)
            return fail_os(err, "put back limit %d", i);
    }
    return 0;
}

int state_put_back(const struct state *state, error *err)
{
    if (put_back_thread(state, err) < 0)
        return -1;
    put_back_features(state); /* before the stack of signals, which has to be large enough */
    if (put_back_signals(state, err) < 0)
        return -1;
    (void) umask(state->umask);
    (void) prctl(PR_SET_NAME, state->name);
    if (chdir(state->folder[0] ? state->folder : "/workspace") < 0 && chdir("/") < 0)
        return fail_os(err, "enter '%s'", state->folder);
    return 0;
}
