/* interpreter.c - passes orders of gloveboxd to the interpreter that a zygote forks into this
 * sandbox, and its results back, after everything that was printed before them. Once it runs user
 * code its messages are hostile input: kinds and sizes are checked, and no message is trusted. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/packet.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum {
    ROOM = 256 * 1024, /* of the control socket: a frame and what the kernel adds to it */
    /* Output is not read for so long after code begins: a line of short code need not wake init. */
    ALONE_MS = 2,
    MESSAGE_WORDS = 2,
    WORDS_MAX = 1024, /* messages that fit into it: the kernel counts at least 512 bytes for each */
};

/* Makes the interpreter's stdin, stdout, stderr and control before any process knows it: its ends
 * are reported to the spawner, which hands them to the zygote. */
int expect_interpreter(struct sandbox *sandbox, struct program *interpreter, error *err)
{
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
    interpreter->control = pairs[3][0];
    interpreter->listener = -1;
    interpreter->has_spoken = interpreter->input_ends = false;
    interpreter->is_driver = interpreter->is_busy = false;
    interpreter->waiting = 0;
    sandbox->ends[3] = pairs[3][1];
    if (fcntl(interpreter->outputs[0], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(interpreter->outputs[1], F_SETFL, O_NONBLOCK) < 0 ||
        fcntl(interpreter->input, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "make a pipe for the interpreter");
    interpreter->flags = AGENT_START_MAIN | AGENT_START_STDIN_PIPE;
    return 0;
}

/* A driver reads its code from the file that the path names. */
static int execute_by_driver(struct program *driver, const unsigned char *payload, size_t size,
                             error *err)
{
    const char *folder = (const char *) payload + sizeof(struct agent_execute);
    const char *end = (const char *) payload + size;
    const char *path = memchr(folder, '\0', (size_t) (end - folder));
    const char *stop = path ? memchr(path + 1, '\0', (size_t) (end - path - 1)) : NULL;
    if (!stop || memchr(path + 1, '\n', (size_t) (stop - path - 1)))
        return fail(err, ERR_PROTOCOL, "the strings of a cell are cut short");
    struct iovec parts[2] = { { (void *) (uintptr_t) (path + 1), (size_t) (stop - path - 1) },
                              { (void *) (uintptr_t) "\n", 1 } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    if (sendmsg(driver->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return fail_os(err, "hand the code to the interpreter");
    driver->is_busy = true;
    return 0;
}

int execute_code(struct sandbox *sandbox, uint32_t id, const unsigned char *payload, size_t size,
                 error *err)
{
    struct agent_frame head = { .size = (uint32_t) size, .kind = AGENT_EXECUTE, .id = id };
    struct iovec parts[2] = { { &head, sizeof head }, { (void *) (uintptr_t) payload, size } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = 2 };
    struct program *interpreter = program_of(sandbox, id);
    if (!interpreter || interpreter->control < 0)
        return fail(err, ERR_NOT_FOUND, "program %u is no interpreter", id);
    if (interpreter->is_driver)
        return execute_by_driver(interpreter, payload, size, err);
    if (sendmsg(interpreter->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return fail_os(err, "hand the code to the interpreter");
    interpreter->is_busy = true;
    interpreter->is_left_alone = deadline_in(ALONE_MS);
    if (sandbox->is_kept) /* a cell mostly wakes on this processor, and no other order waits */
        (void) sched_yield();
    return 0;
}

/* Passes AGENT_IMAGE and its pipe on over the control socket, which a restored interpreter has as
 * well. */
int image_interpreter(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_frame head = { .kind = AGENT_IMAGE, .id = in->head.id };
    struct iovec part = { &head, sizeof head };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights = { .header = { .cmsg_level = SOL_SOCKET,
                             .cmsg_type = SCM_RIGHTS,
                             .cmsg_len = CMSG_LEN(sizeof(int)) } };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    struct program *interpreter = program_of(sandbox, in->head.id);
    if (!interpreter || interpreter->control < 0 || interpreter->is_driver)
        return fail(err, ERR_NOT_FOUND, "program %u is no interpreter", in->head.id);
    if (in->fd < 0)
        return fail(err, ERR_PROTOCOL, "an image needs a pipe");
    memcpy(CMSG_DATA(&rights.header), &in->fd, sizeof in->fd);
    if (sendmsg(interpreter->control, &message, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return fail_os(err, "ask the interpreter for its image");
    interpreter->is_busy = true;
    return 0;
}

/* First message of the interpreter: its walls stand. The listener of its filter comes with it. */
static void interpreter_is_ready(struct sandbox *sandbox, struct program *interpreter,
                                 const struct frame *frame, int listener)
{
    struct agent_interpreter_ready ready;
    memcpy(&ready, frame->payload, sizeof ready);
    interpreter->listener = listener;
    uint32_t id = interpreter->id ? interpreter->id : AGENT_INTERPRETER;
    if (ready.os != 0) {
        error err = { .code = ERR_UNAVAILABLE, .os = ready.os };
        size_t length = frame->head.size - sizeof ready;
        if (length >= sizeof err.text)
            length = sizeof err.text - 1;
        memcpy(err.text, frame->payload + sizeof ready, length);
        send_done(sandbox, id, &err);
        return;
    }
    interpreter->id = id;
    interpreter->pid = (pid_t) ready.pid;
    interpreter->is_main = !sandbox->is_kept;
    struct agent_started started = { .pid = ready.pid };
    send_frame(sandbox, AGENT_STARTED, 0, id, &started, sizeof started, NULL, 0);
}

/* An expected interpreter does not come: the spawner has closed its descriptors. */
static void forget_unborn(struct sandbox *sandbox, struct program *interpreter)
{
    error err;
    (void) fail(&err, ERR_UNAVAILABLE, "no interpreter could be forked; try again");
    send_done(sandbox, interpreter->id, &err);
    (void) close(interpreter->input);
    for (unsigned i = 0; i < 2; i++)
        (void) close(interpreter->outputs[i]);
    interpreter->id = 0;
    interpreter->pid = 0;
}

static void forget_interpreter(struct sandbox *sandbox, struct program *interpreter)
{
    (void) close(interpreter->control);
    interpreter->control = -1;
    if (interpreter->pid == PID_PENDING)
        forget_unborn(sandbox, interpreter);
}

void expect_another(struct sandbox *sandbox)
{
    struct packet packet;
    error err;
    int came = packet_receive(sandbox->report, &packet, &err);
    if (came == PACKET_NONE)
        return;
    if (came != PACKET_CAME) { /* the spawner has ended, and the kernel will end this sandbox */
        (void) close(sandbox->report);
        sandbox->report = -1;
        return;
    }
    struct spawn_inject expect = { 0 };
    if (packet.kind == BUILD_EXPECT && packet.size == sizeof expect)
        memcpy(&expect, packet.body, sizeof expect);
    packet_done(&packet);
    struct program *place = free_place(sandbox);
    if (expect.id == 0 || program_of(sandbox, expect.id) || !place)
        (void) fail(&err, ERR_BUSY, "interpreter %u not started: %d programs at most", expect.id,
                    AGENT_PROCESSES_MAX);
    else if (expect_interpreter(sandbox, place, &err) == 0) {
        place->id = expect.id;
        place->pid = PID_PENDING;
        report_ready(sandbox, &(error){ 0 });
        return;
    }
    send_done(sandbox, expect.id, &err);
    report_ready(sandbox, &err);
}

/* Gives the descriptor of a message. A message with several counts as one with none. */
static int listener_of(struct msghdr *message)
{
    int listener = -1;
    if (take_descriptors(message, &listener, 1) <= 1)
        return listener;
    (void) close(listener);
    return -1;
}

/* Sends the figures of a cell. For a run, gloveboxd asks for them when everything has ended. */
static void tell_measured(struct sandbox *sandbox, const struct program *interpreter)
{
    if (!look_now(sandbox))
        measure_scratch(sandbox);
    tell_usage(sandbox);
    if (sandbox->is_kept)
        send_frame(sandbox, AGENT_MEASURED, 0, interpreter->id, &sandbox->measured,
                   sizeof sandbox->measured, NULL, 0);
}

static void take_word(struct sandbox *sandbox, struct program *interpreter,
                      const struct frame *frame, int listener)
{
    bool is_first = !interpreter->has_spoken;
    interpreter->has_spoken = true;
    if (frame->head.kind == AGENT_INTERPRETER_READY && is_first &&
        frame->head.size >= sizeof(struct agent_interpreter_ready)) {
        interpreter_is_ready(sandbox, interpreter, frame, listener);
        return;
    }
    close_fd(&listener); /* only the first message may have one */
    bool is_result =
        frame->head.kind == AGENT_RESULT && frame->head.size >= sizeof(struct agent_result);
    bool is_end =
        frame->head.kind == AGENT_EXECUTED && frame->head.size == sizeof(struct agent_executed);
    if (!is_result && !is_end)
        return;
    /* Output that was printed before this message is sent before it. */
    drain_output(sandbox, interpreter);
    if (is_end) {
        struct agent_executed executed;
        memcpy(&executed, frame->payload, sizeof executed);
        sandbox->code_has_ended = executed.ends != 0 && !sandbox->is_kept;
        sandbox->conclusion.is_due |=
            interpreter->id == AGENT_INTERPRETER && agent_is_end(&executed);
        interpreter->is_busy = false;
        tell_measured(sandbox, interpreter);
    }
    send_frame(sandbox, (enum agent_kind) frame->head.kind, 0, interpreter->id, frame->payload,
               frame->head.size, NULL, 0);
}

/* The value of a cell and its EXECUTED may come in one message. Moves the next frame of the message
 * to the front. False: there is none, or the rest is no frame. */
static bool next_word(struct frame *frame, size_t *got)
{
    size_t rest = *got - sizeof frame->head - frame->head.size;
    const unsigned char *at = frame->payload + frame->head.size;
    if (rest < sizeof frame->head)
        return false;
    memcpy(&frame->head, at, sizeof frame->head);
    if (frame->head.size > rest - sizeof frame->head)
        return false;
    memmove(frame->payload, at + sizeof frame->head, rest - sizeof frame->head);
    *got = rest;
    return true;
}

/* Sends all frames of a message on together. */
static void take_words(struct sandbox *sandbox, struct program *interpreter, struct frame *frame,
                       size_t got, int listener)
{
    hold_frames();
    take_word(sandbox, interpreter, frame, listener);
    for (unsigned words = 1; words < MESSAGE_WORDS && next_word(frame, &got); words++)
        take_word(sandbox, interpreter, frame, -1);
    release_frames(sandbox);
}

/* One line of a driver. */
static void take_line(struct sandbox *sandbox, struct program *driver, const char *line,
                      size_t size)
{
    static const char whats[] = "vdeVDE";
    const char *what = size >= 2 ? memchr(whats, line[0], sizeof whats - 1) : NULL;
    if (size < 2 || line[1] != ' ')
        return;
    drain_output(sandbox, driver);
    if (what) {
        struct agent_result result = { .what = (uint16_t) ((what - whats) % 3 + 1),
                                       .last = what - whats >= 3 };
        send_frame(sandbox, AGENT_RESULT, 0, driver->id, &result, sizeof result, line + 2,
                   size - 2);
    } else if (line[0] == 'X') {
        char number[16] = "";
        memcpy(number, line + 2, size - 2 < sizeof number - 1 ? size - 2 : sizeof number - 1);
        struct agent_executed executed = { .exit_code = (int32_t) strtol(number, NULL, 10) & 255 };
        driver->is_busy = false;
        tell_measured(sandbox, driver);
        send_frame(sandbox, AGENT_EXECUTED, 0, driver->id, &executed, sizeof executed, NULL, 0);
    }
}

/* Collects lines in the buffer that is for stdin in other programs; long lines are cut. */
static bool driver_speaks(struct sandbox *sandbox, struct program *driver)
{
    char *lines = driver->pending;
    ssize_t got =
        recv(driver->control, lines + driver->said, AGENT_LINE_MAX - driver->said, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    if (got <= 0) {
        (void) close(driver->control);
        driver->control = -1;
        return false;
    }
    driver->said += (uint32_t) got;
    uint32_t at = 0;
    for (char *end; (end = memchr(lines + at, '\n', driver->said - at)) != NULL;) {
        take_line(sandbox, driver, lines + at, (size_t) (end - lines) - at);
        at = (uint32_t) (end - lines) + 1;
    }
    driver->said -= at;
    memmove(lines, lines + at, driver->said);
    if (driver->said == AGENT_LINE_MAX)
        driver->said = 0;
    return true;
}

/* An empty message is read like the end of the other side: poll(2) tells them apart. */
static bool has_hung_up(int control)
{
    struct pollfd ends = { .fd = control, .events = POLLRDHUP };
    return poll(&ends, 1, 0) != 0;
}

bool interpreter_speaks(struct sandbox *sandbox, struct program *interpreter)
{
    static struct frame frame;
    struct iovec parts[2] = { { &frame.head, sizeof frame.head },
                              { frame.payload, AGENT_PAYLOAD_MAX } };
    if (interpreter->is_driver)
        return driver_speaks(sandbox, interpreter);
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = 2,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    ssize_t got = recvmsg(interpreter->control, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return false;
    int listener = got < 0 ? -1 : listener_of(&message);
    /* waitpid() reports its end. */
    if (got < 0 || (got == 0 && has_hung_up(interpreter->control))) {
        close_fd(&listener);
        forget_interpreter(sandbox, interpreter);
        return false;
    }
    if ((size_t) got < sizeof frame.head || frame.head.size > (size_t) got - sizeof frame.head ||
        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
        close_fd(&listener);
        return true;
    }
    take_words(sandbox, interpreter, &frame, (size_t) got, listener);
    return true;
}

/* The interpreter's end may be seen before its last messages are read, which are sent before it. A
 * process that it forked may hold the socket and write for ever, so no more is read than the socket
 * can hold. */
void hear_interpreter_out(struct sandbox *sandbox, struct program *interpreter)
{
    for (unsigned words = 0; words < WORDS_MAX && interpreter->control >= 0; words++)
        if (!interpreter_speaks(sandbox, interpreter))
            return;
}
