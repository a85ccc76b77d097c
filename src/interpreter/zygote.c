/* zygote.c - forks an interpreter into the pid namespace of a sandbox, one for each message.
 *
 * setns(2) with the pidfd of the sandbox's init changes the pid namespace of *later* children, not
 * of the zygote itself. The interpreter must be a child of that init, which waits for it. So a
 * short-lived process between them shares the zygote's memory (vfork: no page table is copied),
 * forks the interpreter and exits; the kernel makes the orphan a child of the init of its pid
 * namespace. */
#include "interpreter/zygote.h"

#include "base/clock.h"
#include "base/packet.h"
#include "interpreter/enter.h"
#include "interpreter/image/rseq.h"

#include <errno.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORK_FAILED = -1, IN_PARENT = 0, IN_CHILD = 1 };

/* What the process between writes into the shared memory. */
struct birth {
    volatile pid_t pid;
    volatile int os;
};

/* Returns IN_CHILD in the interpreter, which has its own copy of this stack and may use it;
 * IN_PARENT or FORK_FAILED in the zygote. Nothing but fork and _exit happens in the process
 * between, and only the two words of *birth change in the memory that it shares. */
static int fork_twice(pid_t (*fork_as_told)(void), struct birth *birth)
{
    birth->pid = -1;
    birth->os = 0;
    /* NOLINTNEXTLINE(clang-analyzer-security.insecureAPI.vfork): no page table is copied so */
    pid_t between = vfork();
    if (between == 0) {
        /* NOLINTNEXTLINE(clang-analyzer-unix.Vfork): the kernel's fork is all that it calls */
        pid_t interpreter = fork_as_told();
        if (interpreter == 0)
            return IN_CHILD;
        birth->os = interpreter < 0 ? errno : 0;
        birth->pid = interpreter;
        _exit(0);
    }
    if (between < 0) {
        birth->os = errno;
        return FORK_FAILED;
    }
    while (waitpid(between, NULL, 0) < 0 && errno == EINTR)
        continue;
    return birth->pid > 0 ? IN_PARENT : FORK_FAILED;
}

static int fork_into(const struct zygote_hooks *hooks, const struct packet *packet, pid_t *ret_pid,
                     error *err)
{
    if (setns(packet->fd[ZYGOTE_FD_INIT], CLONE_NEWPID) < 0)
        return fail_os(err, "enter the pid namespace of the sandbox");
    struct birth birth;
    hooks->before();
    int where = fork_twice(hooks->fork, &birth);
    if (where == IN_CHILD)
        return IN_CHILD;
    hooks->after_in_parent();
    if (where == FORK_FAILED) {
        errno = birth.os;
        return fail_os(err, "fork an interpreter");
    }
    *ret_pid = birth.pid;
    return IN_PARENT;
}

int zygote_serve(int spawner, const struct zygote_hooks *hooks, struct zygote_child *ret_child,
                 error *err)
{
    static struct packet packet; /* static: 1 KiB that every child would dirty on its stack */
    static struct filter filter;
    void *rseq = rseq_find();

    for (;;) {
        int came = packet_receive(spawner, &packet, err);
        if (came < 0)
            return under(err, "receive from the spawner");
        if (came == PACKET_CLOSED)
            return ZYGOTE_ENDED;
        if (came == PACKET_NONE)
            continue;

        int64_t began = now_us();
        struct zygote_fork order = { 0 };
        struct zygote_forked forked = { .pid = -1 };
        int where = zygote_read_order(&packet, &order, &forked.err);
        forked.slot = order.slot;
        forked.generation = order.generation;
        if (where == 0)
            where = filter_read(packet.fd[ZYGOTE_FD_FILTER], &filter, &forked.err);
        if (where == 0)
            where = fork_into(hooks, &packet, &forked.pid, &forked.err);
        if (where == IN_CHILD) {
            int control = -1;
            /* The process between had no rseq area, since it shared memory (kernel/rseq.c). */
            (void) rseq_register(rseq);
            enter_sandbox(&order, packet.fd, &filter, &control);
            hooks->after_in_child();
            *ret_child = (struct zygote_child){ .control = control,
                                                .prime = order.prime,
                                                .slot = order.slot,
                                                .generation = order.generation };
            return ZYGOTE_IS_CHILD;
        }
        packet_done(&packet);
        forked.took_us = (uint64_t) (now_us() - began);
        if (packet_send(spawner, ZYGOTE_FORKED, &forked, sizeof forked, NULL, 0, err) < 0)
            return under(err, "answer the spawner");
    }
}
