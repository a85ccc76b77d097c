/* image.c - takes an image of this process: a forked child writes its own memory to a file
 * descriptor, and the process that is restored from it goes on in the middle of image_take().
 *
 * The state that the kernel keeps is saved by the child in memory that the image holds (`state`,
 * `descriptors`), and restored from there. */
#include "interpreter/image/image.h"

#include "base/cleanup.h"
#include "interpreter/image/image_parts.h"
#include "interpreter/image/rseq.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STACK_BYTES = 512 << 10 };

/* All data of one image, in a mapping of its own: in this process, the child and those restored. */
struct taking {
    int fd, control, verdict[2];
    sigset_t mask; /* of the caller */
    jmp_buf here;
    struct numbers {
        uint32_t vector, stack; /* control words of floating point: rounding and exceptions */
    } numbers;
    struct place place;
    struct state state;
    struct descriptors descriptors;
    int32_t objects[IMAGE_OBJECTS_MAX];
    volatile pid_t pid;
    volatile int os;
    char stack[STACK_BYTES] __attribute__((aligned(64)));
};

static struct stream streams[3];
static struct taking *taking;
static unsigned lost_threads, lost_descriptors;

void image_remember_streams(void)
{
    struct stat now;
    for (int i = 0; i < 3; i++) {
        bool is_open = fstat(i, &now) == 0;
        streams[i] = (struct stream){ .device = is_open ? now.st_dev : 0,
                                      .inode = is_open ? now.st_ino : 0 };
    }
}

void image_lost(unsigned *ret_threads, unsigned *ret_descriptors)
{
    *ret_threads = lost_threads;
    *ret_descriptors = lost_descriptors;
}

/* Control words of floating point, which longjmp(3) does not restore. */
static struct numbers numbers_now(void)
{
    struct numbers now = { 0 };
#if defined __x86_64__
    uint16_t stack;
    __asm__ volatile("fnstcw %0\n\tstmxcsr %1" : "=m"(stack), "=m"(now.vector));
    now.stack = stack;
#else
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    now.vector = (uint32_t) control;
#endif
    return now;
}

static void numbers_set(const struct numbers *numbers)
{
#if defined __x86_64__
    uint16_t stack = (uint16_t) numbers->stack;
    __asm__ volatile("fldcw %0\n\tldmxcsr %1" : : "m"(stack), "m"(numbers->vector));
#else
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t) numbers->vector));
#endif
}

/* glovebox-restore calls it, on the old stack, below the frames that are in use. */
static void resume(uint64_t end, const int32_t *objects)
{
    memcpy(taking->objects, objects, sizeof taking->objects);
    (void) munmap((void *) IMAGE_RESTORE_FROM, end - IMAGE_RESTORE_FROM);
    longjmp(taking->here, 1);
}

static uintptr_t __attribute__((noinline)) below_this_frame(void)
{
    enum { RED_ZONE = 256 };
    return ((uintptr_t) __builtin_frame_address(0) - RED_ZONE) & ~(uintptr_t) 15;
}

static int prepare(struct space **ret_space, error *err)
{
    const int apart[] = { taking->fd, taking->control, taking->verdict[0], taking->verdict[1] };
    if (state_note(&taking->state, err) < 0)
        return -1;
    if (descriptors_note(&taking->descriptors, streams, apart, 4, err) < 0)
        return -1;
    if (space_look(ret_space, &taking->place, err) < 0)
        return -1;
    return descriptors_find(&taking->descriptors, *ret_space, err);
}

/* Pages that the process changes while its image is written exist twice, so memory may run out.
 * Where the kernel then kills one process, not the whole group (cgroup v1), it is this child. */
static void set_oom_score(void)
{
    auto_fd score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    ssize_t done = write(score, "1000", 4);
    (void) done;
}

static void write_none(const error *why)
{
    struct image_none none = { .magic = IMAGE_NONE };
    memcpy(none.why, why->text, sizeof none.why - 1);
    if (write(taking->fd, &none, sizeof none) < 0)
        _exit(1);
}

/* The child, which has no parent to wait for it. The original waits for the verdict instead. */
static _Noreturn void write_down(void)
{
    set_oom_score();
    struct space *space = NULL;
    error err = { 0 };
    bool can = prepare(&space, &err) == 0;
    if (!can)
        write_none(&err);
    ssize_t told = write(taking->verdict[1], &err, sizeof err);
    if (!can || told < 0)
        _exit(1);
    if (space_list(space, &err) < 0) {
        write_none(&err);
        _exit(1);
    }
    _exit(space_write(space, taking->fd, &err) == 0 ? 0 : 1);
}

/* A process that shares the memory of the original, forks the child and exits: so neither the
 * original nor the child gets a signal at the other's end. */
static int between(void *nothing)
{
    (void) nothing;
    pid_t child = fork();
    if (child == 0)
        write_down();
    taking->os = child < 0 ? errno : 0;
    taking->pid = child;
    _exit(0);
}

static int fork_writer(error *err)
{
    taking->pid = -1;
    pid_t pid = clone(between, taking->stack + STACK_BYTES, CLONE_VM | CLONE_VFORK, NULL);
    if (pid < 0)
        return fail_os(err, "fork the image");
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        continue;
    errno = taking->os;
    return taking->pid > 0 ? 0 : fail_os(err, "fork the image");
}

/* In the restored process: restores its state, or exits with a message. */
static void wake(const struct zygote_hooks *hooks)
{
    error err;
    numbers_set(&taking->numbers);
    if (state_put_back(&taking->state, &err) < 0 ||
        descriptors_put_back(&taking->descriptors, taking->control, taking->objects, &err) < 0 ||
        state_put_back_limits(&taking->state, &err) < 0) {
        static const char begins[] = "glovebox-restore: ";
        struct iovec line[] = { { (void *) (uintptr_t) begins, sizeof begins - 1 },
                                { err.text, strnlen(err.text, sizeof err.text) },
                                { (void *) (uintptr_t) "\n", 1 } };
        ssize_t told = writev(2, line, 3);
        (void) told;
        _exit(IMAGE_EXIT_FAILED);
    }
    lost_threads = taking->state.threads - 1;
    lost_descriptors = taking->descriptors.lost;
    (void) pthread_sigmask(SIG_SETMASK, &taking->mask, NULL);
    hooks->after_in_child();
}

static int begin(int fd, int control, error *err)
{
    if (taking)
        return fail(err, ERR_BUSY, "another image is being taken");
    if (getpid() != gettid())
        return fail(err, ERR_UNAVAILABLE, "an image can only be taken by the main thread");
    struct taking *new = mmap(NULL, sizeof *new, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (new == MAP_FAILED)
        return fail_os(err, "find memory for what is noted");
    new->fd = fd;
    new->control = control;
    if (state_look(&new->state, err) < 0 ||
        (pipe2(new->verdict, O_CLOEXEC) < 0 && fail_os(err, "make a pipe") < 0)) {
        (void) munmap(new, sizeof *new);
        return -1;
    }
    new->numbers = numbers_now();
    taking = new;
    return 0;
}

static void end(void)
{
    struct taking *done = taking;
    taking = NULL;
    (void) munmap(done, sizeof *done);
}

int image_take(int fd, int control, const struct zygote_hooks *hooks, int *ret_verdict, error *err)
{
    if (begin(fd, control, err) < 0)
        return IMAGE_FAILED;
    hooks->before();
    sigset_t all;
    (void) sigfillset(&all);
    (void) pthread_sigmask(SIG_SETMASK, &all, &taking->mask);
    taking->place = (struct place){ .resume = resume,
                                    .stack = below_this_frame(),
                                    .thread = (uintptr_t) thread_pointer() };
    if (setjmp(taking->here) != 0) {
        wake(hooks);
        end();
        return IMAGE_RESTORED;
    }
    int result = fork_writer(err);
    (void) pthread_sigmask(SIG_SETMASK, &taking->mask, NULL);
    hooks->after_in_parent();
    (void) close(taking->verdict[1]);
    if (result < 0)
        (void) close(taking->verdict[0]);
    else
        *ret_verdict = taking->verdict[0];
    end();
    return result < 0 ? IMAGE_FAILED : IMAGE_TAKEN;
}

int image_wait(int verdict, error *err)
{
    auto_fd pipe = verdict;
    error told = { 0 };
    ssize_t got;
    while ((got = read(pipe, &told, sizeof told)) < 0 && errno == EINTR)
        continue;
    if (got < 0)
        return fail_os(err, "wait for the image");
    if (got != sizeof told)
        return fail(err, ERR_UNAVAILABLE, "the process that writes the image ended early");
    told.text[sizeof told.text - 1] = '\0';
    *err = told;
    return told.code == ERR_NONE ? 0 : -1;
}
