/* serve.c - the event loop of pid 1: orders of gloveboxd, output and ends of programs, refused
 * calls. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum {
    LOOK_MS = 20, /* how often the file system is measured while something runs */
    FRAMES_A_TURN = 8
};

/* What is waited for: the stream, children, refused calls, the spawner, operations of a session,
 * then each program's five descriptors. */
enum {
    ON_STREAM,
    ON_CHILDREN,
    ON_DENIALS,
    ON_SPAWNER,
    ON_OPERATIONS,
    ON_PROGRAMS = ON_OPERATIONS + AGENT_OPERATIONS_MAX
};
enum { OF_STDOUT, OF_STDERR, OF_STDIN, OF_LISTENER, OF_CONTROL, OF_PROGRAM };

static struct pollfd watched[ON_PROGRAMS + OF_PROGRAM * AGENT_PROCESSES_MAX];

/* Are refused calls and messages of interpreters handled in this turn (pace.h)? */
static bool watches_programs(struct sandbox *sandbox)
{
    if (pace_is_spent(&sandbox->pace))
        pace_falls(&sandbox->pace, now_ms());
    return !pace_is_spent(&sandbox->pace);
}

static nfds_t gather(struct sandbox *sandbox, int children)
{
    bool is_watched = watches_programs(sandbox);
    watched[ON_STREAM] = (struct pollfd){ .fd = sandbox->inside, .events = POLLIN };
    watched[ON_CHILDREN] = (struct pollfd){ .fd = children, .events = POLLIN };
    watched[ON_DENIALS] =
        (struct pollfd){ .fd = is_watched ? sandbox->listener : -1, .events = POLLIN };
    watched[ON_SPAWNER] = (struct pollfd){ .fd = sandbox->report, .events = POLLIN };
    (void) operations_gather(&watched[ON_OPERATIONS]);
    nfds_t count = ON_PROGRAMS;
    for_each(program, sandbox->programs) {
        bool is_heard =
            program->id && output_may_pass(program) && deadline_has_passed(program->is_left_alone);
        struct pollfd its[OF_PROGRAM] = {
            [OF_STDOUT] = { .fd = is_heard ? program->outputs[0] : -1, .events = POLLIN },
            [OF_STDERR] = { .fd = is_heard ? program->outputs[1] : -1, .events = POLLIN },
            [OF_STDIN] = { .fd = program->id && program->waiting ? program->input : -1,
                           .events = POLLOUT },
            [OF_LISTENER] = { .fd = is_watched ? program->listener : -1, .events = POLLIN },
            [OF_CONTROL] = { .fd = is_watched ? program->control : -1, .events = POLLIN },
        };
        memcpy(&watched[count], its, sizeof its);
        count += OF_PROGRAM;
    }
    while (count > ON_PROGRAMS && watched[count - 1].fd < 0)
        count--;
    return count;
}

/* POLLHUP: every process with the filter has ended. Before Linux 6.11 a read would then wait for
 * ever. */
static void hear_denials(struct sandbox *sandbox, uint32_t id, const struct pollfd *heard,
                         int *listener)
{
    if (heard->revents & POLLIN) {
        answer_denial(sandbox, id, listener);
        pace_use(&sandbox->pace);
    } else if (heard->revents) {
        close_fd(listener);
        *listener = -1;
    }
}

static void look_at_program(struct sandbox *sandbox, struct program *program,
                            const struct pollfd *heard)
{
    for (unsigned stream = 1; stream <= 2; stream++)
        if (heard[stream - 1].revents)
            (void) pass_output(sandbox, program, stream);
    if (heard[OF_STDIN].revents)
        write_input(sandbox, program);
    if (program->listener >= 0)
        hear_denials(sandbox, program->id, &heard[OF_LISTENER], &program->listener);
    if (heard[OF_CONTROL].revents && program->control >= 0) {
        (void) interpreter_speaks(sandbox, program);
        pace_use(&sandbox->pace);
    }
}

static void look(struct sandbox *sandbox, nfds_t count)
{
    for (nfds_t i = count; i < COUNT_OF(watched); i++)
        watched[i].revents = 0; /* of an earlier turn */
    for (unsigned i = 0; ON_PROGRAMS + i * OF_PROGRAM < count; i++)
        look_at_program(sandbox, &sandbox->programs[i], &watched[ON_PROGRAMS + i * OF_PROGRAM]);
    hear_denials(sandbox, 0, &watched[ON_DENIALS], &sandbox->listener);
    if (watched[ON_SPAWNER].revents)
        expect_another(sandbox);
}

/* An interpreter that waits for code or its next cell sleeps, so nothing has to be measured. */
static int look_interval(const struct sandbox *sandbox)
{
    if (pace_is_spent(&sandbox->pace))
        return PACE_STEP_MS;
    for_each(program, sandbox->programs)
        if (program->id != 0 && !deadline_has_passed(program->is_left_alone))
            return 1;
    for_each(program, sandbox->programs)
        if (program->id != 0 && (program->control < 0 || program->is_busy))
            return LOOK_MS;
    return -1;
}

int watch_children(error *err)
{
    sigset_t set;
    (void) sigemptyset(&set);
    (void) sigaddset(&set, SIGCHLD);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
    (void) sigprocmask(SIG_BLOCK, &set, NULL);
    int children = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    return children < 0 ? fail_os(err, "watch the ends of programs") : children;
}

_Noreturn void serve(struct sandbox *sandbox, int children)
{
    static struct frame frame = { .fd = -1 };
    static char pending[AGENT_PROCESSES_MAX][AGENT_WINDOW];
    for_each(program, sandbox->programs) {
        program->pending = pending[program - sandbox->programs];
        program->listener = -1;
        if (program != sandbox->programs || sandbox->spec.start != SPAWN_FORKED)
            program->control = -1;
    }
    say_hello(sandbox);
    for (;;) {
        nfds_t count = gather(sandbox, children);
        bool is_busy = operations_are_busy();
        int timeout = is_busy ? 0 : usage_interval_ms(sandbox, look_interval(sandbox));
        int ready = poll(watched, count, timeout);
        if (ready < 0 && errno != EINTR)
            _exit(1);
        watch_usage(sandbox);
        if (timeout > 0 && ready <= 0) /* else after what a request waits for */
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
            (void) reap_programs(sandbox);
        }
        finish_programs(sandbox);
        for (int i = 0; watched[ON_STREAM].revents && i < FRAMES_A_TURN; i++) {
            if (!frame_is_complete(sandbox, &frame))
                break;
            obey_order(sandbox, &frame);
            close_fd(&frame.fd);
            frame.fd = -1;
        }
        conclude_if_due(sandbox);
        if (timeout > 0)
            measure_scratch(sandbox);
    }
}
