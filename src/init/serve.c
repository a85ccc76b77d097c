/* serve.c - pid 1's loop: orders of gloveboxd, output and ends of programs, refused system calls.
 */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOK_MS = 20 /* how often the file system is measured while something runs */ };

/* What is waited for: the stream, children, refused calls, operations of a session, then each
 * program's three descriptors. */
enum {
    ON_STREAM,
    ON_CHILDREN,
    ON_DENIALS,
    ON_INTERPRETER_DENIALS,
    ON_INTERPRETER,
    ON_OPERATIONS,
    ON_PROGRAMS = ON_OPERATIONS + INSIDE_OPERATIONS_MOST
};

static struct pollfd watched[ON_PROGRAMS + 3 * INSIDE_PROCESSES_MOST];

static nfds_t gather(struct sandbox *sandbox, int children)
{
    watched[ON_STREAM] = (struct pollfd){ .fd = sandbox->inside, .events = POLLIN };
    watched[ON_CHILDREN] = (struct pollfd){ .fd = children, .events = POLLIN };
    watched[ON_DENIALS] = (struct pollfd){ .fd = sandbox->listener, .events = POLLIN };
    watched[ON_INTERPRETER_DENIALS] =
        (struct pollfd){ .fd = sandbox->interpreter_listener, .events = POLLIN };
    watched[ON_INTERPRETER] = (struct pollfd){ .fd = sandbox->interpreter, .events = POLLIN };
    (void) operations_gather(&watched[ON_OPERATIONS]);
    nfds_t count = ON_PROGRAMS;
    for_each(program, sandbox->programs) {
        bool heard = program->id && output_may_pass(program);
        watched[count++] =
            (struct pollfd){ .fd = heard ? program->outputs[0] : -1, .events = POLLIN };
        watched[count++] =
            (struct pollfd){ .fd = heard ? program->outputs[1] : -1, .events = POLLIN };
        watched[count++] =
            (struct pollfd){ .fd = program->id && program->waiting ? program->input : -1,
                             .events = POLLOUT };
    }
    while (count > ON_PROGRAMS && watched[count - 1].fd < 0)
        count--;
    return count;
}

/* POLLHUP: every process behind the filter has ended. Before Linux 6.11 a read would then wait for
 * ever. */
static void hear_denials(struct sandbox *sandbox, const struct pollfd *heard, int *listener)
{
    if (heard->revents & POLLIN)
        answer_denial(sandbox, listener);
    else if (heard->revents) {
        close_fd(listener);
        *listener = -1;
    }
}

static void look(struct sandbox *sandbox, nfds_t count)
{
    for (nfds_t i = ON_PROGRAMS; i < count; i++) {
        if (watched[i].fd < 0 || watched[i].revents == 0)
            continue;
        struct program *program = &sandbox->programs[(i - ON_PROGRAMS) / 3];
        unsigned which = (unsigned) ((i - ON_PROGRAMS) % 3);
        if (which == 2)
            write_input(sandbox, program);
        else
            (void) pass_output(sandbox, program, which + 1);
    }
    hear_denials(sandbox, &watched[ON_DENIALS], &sandbox->listener);
    hear_denials(sandbox, &watched[ON_INTERPRETER_DENIALS], &sandbox->interpreter_listener);
    if (watched[ON_INTERPRETER].revents)
        (void) interpreter_speaks(sandbox);
}

static int watch_children(void)
{
    sigset_t set;
    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

_Noreturn void serve(struct sandbox *sandbox)
{
    static struct frame frame;
    int children = watch_children();
    say_hello(sandbox);
    for (;;) {
        nfds_t count = gather(sandbox, children);
        bool is_busy = operations_are_busy();
        int timeout = is_busy ? 0 : programs_alive(sandbox) > 0 ? LOOK_MS : -1;
        int ready = poll(watched, count, timeout);
        if (ready < 0 && errno != EINTR)
            _exit(1);
        if (timeout > 0)
            measure_scratch(sandbox);
        if (ready <= 0 && !is_busy)
            continue;
        operations_turn(sandbox, &watched[ON_OPERATIONS]);
        if (ready <= 0)
            continue;
        look(sandbox, count);
        if (watched[ON_CHILDREN].revents) {
            struct signalfd_siginfo seen;
            (void) !read(children, &seen, sizeof seen);
            reap_programs(sandbox);
        }
        finish_programs(sandbox);
        if (watched[ON_STREAM].revents && frame_is_complete(sandbox, &frame))
            obey_order(sandbox, &frame);
    }
}
