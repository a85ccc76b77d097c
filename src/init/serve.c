/* serve.c - pid 1's loop: orders of gloveboxd, output and ends of programs, refused system calls.
 */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOK_MS = 20 /* how often the file system is measured while something runs */ };

static struct frame frame;

/* An order: how many bytes its payload has at least, and what is done. The answer is DONE with the
 * same id, unless the order answers by itself. */
typedef int order(struct sandbox *sandbox, const struct frame *in, error *err);

static int on_put(struct sandbox *sandbox, const struct frame *in, error *err)
{
    return put_begin(sandbox, in->head.id, in->payload, in->head.size, err);
}

/* Bytes belong to the file that is being written, or else to a program's stdin. */
static int on_data(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (is_putting(in->head.id))
        return put_data(in->head.id, in->payload, in->head.size, err);
    return feed_program(sandbox, in->head.id, in->payload, in->head.size, err);
}

static int on_end(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (!is_putting(in->head.id)) {
        end_input(sandbox, in->head.id);
        return 0;
    }
    int ended = put_end(in->head.id, err);
    if (ended == PUT_WELL)
        send_done(sandbox, in->head.id, NULL);
    return ended < 0 ? -1 : 0;
}

static int on_seal(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (seal_inputs(sandbox, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_start(struct sandbox *sandbox, const struct frame *in, error *err)
{
    return start_program(sandbox, in->head.id, in->payload, in->head.size, err);
}

static int on_execute(struct sandbox *sandbox, const struct frame *in, error *err)
{
    return execute_code(sandbox, in->head.id, in->payload, in->head.size, err);
}

static int on_signal(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (signal_program(sandbox, in->head.id, (const void *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_resize(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (resize_terminal(sandbox, in->head.id, (const void *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_stop(struct sandbox *sandbox, const struct frame *in, error *err)
{
    (void) err;
    stop_everything(sandbox);
    finish_programs(sandbox);
    measure_scratch(sandbox);
    send_frame(sandbox, INSIDE_STOPPED, 0, in->head.id, &sandbox->measured,
               sizeof sandbox->measured, NULL, 0);
    return 0;
}

static int on_collect(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct inside_collect limits;
    memcpy(&limits, in->payload, sizeof limits);
    if (collect_artifacts(sandbox, in->head.id, &limits, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_measure(struct sandbox *sandbox, const struct frame *in, error *err)
{
    (void) err;
    measure_scratch(sandbox);
    sandbox->measured.processes = programs_alive(sandbox);
    send_frame(sandbox, INSIDE_MEASURED, 0, in->head.id, &sandbox->measured,
               sizeof sandbox->measured, NULL, 0);
    return 0;
}

static int on_get(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (get_file(sandbox, in->head.id, (const char *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_list(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct inside_list limits;
    memcpy(&limits, in->payload, sizeof limits);
    if (list_folder(sandbox, in->head.id, &limits, (const char *) in->payload + sizeof limits,
                    err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_make(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (make_folder(sandbox, (const char *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_move(struct sandbox *sandbox, const struct frame *in, error *err)
{
    const char *from = (const char *) in->payload;
    size_t length = strlen(from);
    if (length + 1 >= in->head.size)
        return fail(err, ERR_PROTOCOL, "a move needs two paths");
    if (move_path(sandbox, from, from + length + 1, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

static int on_remove(struct sandbox *sandbox, const struct frame *in, error *err)
{
    if (remove_path(sandbox, (const char *) in->payload, err) < 0)
        return -1;
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

/* clang-format off */
static const struct {
    size_t least; /* bytes of payload */
    order *carry_out;
} orders[] = {
    [INSIDE_PUT]     = { sizeof(struct inside_put) + 1,     on_put     },
    [INSIDE_DATA]    = { 0,                                 on_data    },
    [INSIDE_END]     = { 0,                                 on_end     },
    [INSIDE_SEAL]    = { 0,                                 on_seal    },
    [INSIDE_START]   = { sizeof(struct inside_start) + 1,   on_start   },
    [INSIDE_SIGNAL]  = { sizeof(struct inside_signal),      on_signal  },
    [INSIDE_STOP]    = { 0,                                 on_stop    },
    [INSIDE_COLLECT] = { sizeof(struct inside_collect),     on_collect },
    [INSIDE_MEASURE] = { 0,                                 on_measure },
    [INSIDE_GET]     = { 1,                                 on_get     },
    [INSIDE_LIST]    = { sizeof(struct inside_list),        on_list    },
    [INSIDE_MAKE]    = { 1,                                 on_make    },
    [INSIDE_MOVE]    = { 3,                                 on_move    },
    [INSIDE_REMOVE]  = { 1,                                 on_remove  },
    [INSIDE_RESIZE]  = { sizeof(struct inside_size),        on_resize  },
    [INSIDE_EXECUTE] = { sizeof(struct inside_execute) + 2, on_execute },
};
/* clang-format on */

static void obey(struct sandbox *sandbox)
{
    error err = { 0 };
    if (!frame_is_complete(sandbox, &frame))
        return;
    uint16_t kind = frame.head.kind;
    if (kind >= COUNT_OF(orders) || !orders[kind].carry_out || frame.head.size < orders[kind].least)
        (void) fail(&err, ERR_PROTOCOL, "order %u does not exist or is too short", kind);
    else if (orders[kind].carry_out(sandbox, &frame, &err) == 0)
        return;
    send_done(sandbox, frame.head.id, &err);
}

/* What is waited for: the stream, children, refused calls, then each program's three descriptors.
 */
enum { ON_STREAM, ON_CHILDREN, ON_DENIALS, ON_INTERPRETER_DENIALS, ON_INTERPRETER, ON_PROGRAMS };

static struct pollfd watched[ON_PROGRAMS + 3 * INSIDE_PROCESSES_MOST];

static nfds_t gather(struct sandbox *sandbox, int children)
{
    watched[ON_STREAM] = (struct pollfd){ .fd = sandbox->inside, .events = POLLIN };
    watched[ON_CHILDREN] = (struct pollfd){ .fd = children, .events = POLLIN };
    watched[ON_DENIALS] = (struct pollfd){ .fd = sandbox->listener, .events = POLLIN };
    watched[ON_INTERPRETER_DENIALS] =
        (struct pollfd){ .fd = sandbox->interpreter_listener, .events = POLLIN };
    watched[ON_INTERPRETER] = (struct pollfd){ .fd = sandbox->interpreter, .events = POLLIN };
    nfds_t count = ON_PROGRAMS;
    for_each(program, sandbox->programs) {
        watched[count++] =
            (struct pollfd){ .fd = program->id ? program->outputs[0] : -1, .events = POLLIN };
        watched[count++] =
            (struct pollfd){ .fd = program->id ? program->outputs[1] : -1, .events = POLLIN };
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
    struct inside_hello hello = { .version = INSIDE_VERSION,
                                  .landlock_abi = (uint32_t) sandbox->landlock_abi };
    int children = watch_children();
    send_frame(sandbox, INSIDE_HELLO, 0, 0, &hello, sizeof hello, NULL, 0);
    for (;;) {
        nfds_t count = gather(sandbox, children);
        int timeout = programs_alive(sandbox) > 0 ? LOOK_MS : -1;
        int ready = poll(watched, count, timeout);
        if (ready < 0 && errno != EINTR)
            _exit(1);
        if (timeout > 0)
            measure_scratch(sandbox);
        if (ready <= 0)
            continue;
        look(sandbox, count);
        if (watched[ON_CHILDREN].revents) {
            struct signalfd_siginfo seen;
            (void) !read(children, &seen, sizeof seen);
            reap_programs(sandbox);
        }
        finish_programs(sandbox);
        if (watched[ON_STREAM].revents)
            obey(sandbox);
    }
}
