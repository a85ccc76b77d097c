/* interpreter.c - between gloveboxd and the interpreter that a zygote forks into this sandbox:
 * orders go in, results come out, after everything that was printed before them. Once it runs user
 * code, what it says is that code's word: kinds and sizes are checked, nothing is believed. */
#include "init/init.h"

#include "base/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ROOM = 256 * 1024, /* of the control socket: a frame and what the kernel adds to it */
    WORDS_MOST = 1024, /* that fit into it: the kernel counts at least 512 bytes for each */
};

/* Makes the interpreter's stdin, stdout, stderr and control before anybody knows it: its ends are
 * reported to the spawner, which hands them to the zygote. */
int expect_interpreter(struct sandbox *sandbox, error *err)
{
    struct program *interpreter = &sandbox->programs[0];
    int pairs[4][2];
    int room = ROOM;
    for (unsigned i = 0; i < 3; i++)
        if (pipe2(pairs[i], O_CLOEXEC) < 0)
            return fail_os(err, "make a pipe for the interpreter");
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pairs[3]) < 0)
        return fail_os(err, "make a socket for the interpreter");
    for (unsigned i = 0; i < 2; i++)
        (void) setsockopt(pairs[3][i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);

    sandbox->ends[0] = pairs[0][0];
    interpreter->input = pairs[0][1];
    for (unsigned i = 1; i < 3; i++) {
        interpreter->outputs[i - 1] = pairs[i][0];
        sandbox->ends[i] = pairs[i][1];
    }
    sandbox->interpreter = pairs[3][0];
    sandbox->ends[3] = pairs[3][1];
    for (unsigned i = 0; i < 2; i++)
        if (fcntl(interpreter->outputs[i], F_SETFL, O_NONBLOCK) < 0)
            return fail_os(err, "make a pipe for the interpreter");
    if (fcntl(interpreter->input, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "make a pipe for the interpreter");
    interpreter->flags = INSIDE_START_MAIN | INSIDE_START_STDIN_PIPE;
    return 0;
}

int execute_code(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
                 error *err)
{
    struct inside_frame head = { .size = (uint32_t) size, .kind = INSIDE_EXECUTE, .id = id };
    struct iovec parts[2] = { { &head, sizeof head }, { (void *) (uintptr_t) payload, size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    if (sandbox->interpreter < 0 || !program_of(sandbox, INSIDE_INTERPRETER))
        return fail(err, ERR_NOT_FOUND, "no interpreter runs in this sandbox");
    if (sendmsg(sandbox->interpreter, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return fail_os(err, "hand the code to the interpreter");
    return 0;
}

/* First word of the interpreter: its walls stand, and here is the listener of its filter. */
static void interpreter_is_ready(struct sandbox *sandbox, const struct frame *frame, int listener)
{
    struct inside_interpreter_ready ready;
    struct program *interpreter = &sandbox->programs[0];
    memcpy(&ready, frame->payload, sizeof ready);
    sandbox->interpreter_listener = listener;
    if (ready.os != 0) {
        error err = { .code = ERR_UNAVAILABLE, .os = ready.os };
        size_t length = frame->head.size - sizeof ready;
        if (length >= sizeof err.text)
            length = sizeof err.text - 1;
        memcpy(err.text, frame->payload + sizeof ready, length);
        send_done(sandbox, INSIDE_INTERPRETER, &err);
        return;
    }
    interpreter->id = INSIDE_INTERPRETER;
    interpreter->pid = (pid_t) ready.pid;
    interpreter->is_main = true;
    struct inside_started started = { .pid = ready.pid };
    send_frame(sandbox, INSIDE_STARTED, 0, INSIDE_INTERPRETER, &started, sizeof started, NULL, 0);
}

static void forget_interpreter(struct sandbox *sandbox)
{
    (void) close(sandbox->interpreter);
    sandbox->interpreter = -1;
}

/* Takes the one descriptor that a message may carry. What comes with it, or in another shape, is
 * closed: the kernel has put it into our table already, and the table must not fill up. */
static int listener_of(struct msghdr *message)
{
    int listener = -1;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int came;
            memcpy(&came, CMSG_DATA(header) + i * sizeof came, sizeof came);
            if (count == 1 && listener < 0)
                listener = came;
            else
                (void) close(came);
        }
    }
    return listener;
}

static void take_word(struct sandbox *sandbox, const struct frame *frame, int listener)
{
    bool is_first = !sandbox->interpreter_has_spoken;
    sandbox->interpreter_has_spoken = true;
    if (frame->head.kind == INSIDE_INTERPRETER_READY && is_first &&
        frame->head.size >= sizeof(struct inside_interpreter_ready)) {
        interpreter_is_ready(sandbox, frame, listener);
        return;
    }
    if (listener >= 0)
        (void) close(listener); /* nobody asked for it */
    bool is_result =
        frame->head.kind == INSIDE_RESULT && frame->head.size >= sizeof(struct inside_result);
    bool is_end =
        frame->head.kind == INSIDE_EXECUTED && frame->head.size == sizeof(struct inside_executed);
    if (!is_result && !is_end)
        return;
    /* What was printed before it goes before it. */
    drain_output(sandbox, &sandbox->programs[0]);
    if (is_end) {
        struct inside_executed executed;
        memcpy(&executed, frame->payload, sizeof executed);
        sandbox->code_has_ended = executed.ends != 0;
        measure_scratch(sandbox);
    }
    send_frame(sandbox, (enum inside_kind) frame->head.kind, 0, frame->head.id, frame->payload,
               frame->head.size, NULL, 0);
}

bool interpreter_speaks(struct sandbox *sandbox)
{
    static struct frame frame;
    struct iovec parts[2] = { { &frame.head, sizeof frame.head },
                              { frame.payload, INSIDE_PAYLOAD_MOST } };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = 2,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    ssize_t got = recvmsg(sandbox->interpreter, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) { /* its end is told by waitpid() */
        forget_interpreter(sandbox);
        return false;
    }
    int listener = listener_of(&message);
    if ((size_t) got < sizeof frame.head || frame.head.size != (size_t) got - sizeof frame.head ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        if (listener >= 0)
            (void) close(listener);
        return true;
    }
    take_word(sandbox, &frame, listener);
    return true;
}

/* Its end may be seen before its last words are read: they go before its end. What it forked may
 * still hold the socket and speak for ever, so no more is taken than the socket can hold. */
void hear_interpreter_out(struct sandbox *sandbox)
{
    for (unsigned words = 0; words < WORDS_MOST && sandbox->interpreter >= 0; words++)
        if (!interpreter_speaks(sandbox))
            return;
}
