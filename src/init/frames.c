/* frames.c - reads and writes the frames of agent.h. When gloveboxd has closed the stream, pid 1
 * exits and the kernel ends the sandbox. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/packet.h"
#include "base/table.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Reads once. False: nothing more has come. */
static bool read_some(struct sandbox *sandbox, struct frame *frame)
{
    size_t have = frame->have, wanted = sizeof frame->head;
    if (have >= wanted)
        wanted += frame->head.size;
    unsigned char *into = have < sizeof frame->head ? (unsigned char *) &frame->head + have
                                                    : frame->payload + (have - sizeof frame->head);
    struct iovec part = { into, wanted - have };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    ssize_t got = recvmsg(sandbox->inside, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    /* A descriptor comes with the first byte of its frame (unix(7)), so it belongs to this one. */
    int came = -1;
    if (got > 0 && take_descriptors(&message, &came, 1) > 0) {
        close_fd(&frame->fd);
        frame->fd = came;
    }
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
        _exit(0);
    if (got > 0)
        frame->have = have + (size_t) got;
    return got > 0;
}

/* Reads what has come. True once a whole frame is there: it may take several calls. */
bool frame_is_complete(struct sandbox *sandbox, struct frame *frame)
{
    while (read_some(sandbox, frame)) {
        if (frame->have < sizeof frame->head)
            continue;
        if (frame->head.size > AGENT_PAYLOAD_MAX)
            _exit(1); /* gloveboxd never sends that */
        if (frame->have < sizeof frame->head + frame->head.size)
            continue;
        frame->payload[frame->head.size] = '\0'; /* ends paths */
        frame->have = 0;
        return true;
    }
    return false;
}

static void send_all(int stream, struct iovec *parts, unsigned count)
{
    while (count > 0) {
        struct msghdr message = { .msg_iov = parts, .msg_iovlen = count };
        ssize_t sent = sendmsg(stream, &message, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0)
            _exit(0);
        for (size_t left = (size_t) sent; count > 0;) {
            if (left < parts->iov_len) {
                parts->iov_base = (char *) parts->iov_base + left;
                parts->iov_len -= left;
                break;
            }
            left -= parts->iov_len;
            parts++;
            count--;
        }
    }
}

static struct {
    bool is_on;
    size_t size;
    unsigned char bytes[1024];
} held;

void hold_frames(void)
{
    held.is_on = true;
}

static void send_held(const struct sandbox *sandbox)
{
    struct iovec part = { held.bytes, held.size };
    held.size = 0;
    send_all(sandbox->inside, &part, part.iov_len > 0);
}

void release_frames(const struct sandbox *sandbox)
{
    held.is_on = false;
    send_held(sandbox);
}

/* False: the frame does not fit behind those that are held, which have then been sent. */
static bool hold(const struct sandbox *sandbox, const struct iovec *parts, unsigned count)
{
    size_t size = 0;
    for (unsigned i = 0; i < count; i++)
        size += parts[i].iov_len;
    if (held.size + size > sizeof held.bytes) {
        send_held(sandbox);
        return false;
    }
    for (unsigned i = 0; i < count; i++) {
        memcpy(held.bytes + held.size, parts[i].iov_base, parts[i].iov_len);
        held.size += parts[i].iov_len;
    }
    return true;
}

/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
void send_frame(const struct sandbox *sandbox, enum agent_kind kind, unsigned stream, uint32_t id,
                const void *first, size_t first_size, const void *second, size_t second_size)
{
    struct agent_frame head = {
        .size = (uint32_t) (first_size + second_size),
        .kind = (uint16_t) kind,
        .stream = (uint16_t) stream,
        .id = id,
    };
    struct iovec parts[3] = { { .iov_base = &head, .iov_len = sizeof head } };
    unsigned count = 1;
    if (first_size > 0)
        parts[count++] = (struct iovec){ (void *) (uintptr_t) first, first_size };
    if (second_size > 0)
        parts[count++] = (struct iovec){ (void *) (uintptr_t) second, second_size };
    if (!held.is_on || !hold(sandbox, parts, count))
        send_all(sandbox->inside, parts, count);
}

/* The only message with descriptors (the egress sockets), sent before any code runs. */
void say_hello(struct sandbox *sandbox)
{
    struct agent_hello hello = { .version = AGENT_VERSION,
                                 .landlock_abi = (uint32_t) sandbox->landlock_abi };
    struct agent_frame head = { .size = sizeof hello, .kind = AGENT_HELLO };
    struct iovec parts[2] = { { &head, sizeof head }, { &hello, sizeof hello } };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = COUNT_OF(parts) };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof sandbox->route)];
    } rights = { 0 };
    size_t size = sandbox->route_count * sizeof sandbox->route[0];
    if (size > 0) {
        message.msg_control = rights.space;
        message.msg_controllen = CMSG_SPACE(size);
        rights.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(size) };
        memcpy(CMSG_DATA(&rights.header), sandbox->route, size);
    }
    /* The stream is empty, so that so few bytes are never sent in part. */
    if (sendmsg(sandbox->inside, &message, MSG_NOSIGNAL) != sizeof head + sizeof hello)
        _exit(1);
    for (unsigned i = 0; i < sandbox->route_count; i++)
        (void) close(sandbox->route[i]);
    sandbox->route_count = 0;
}

void send_done(const struct sandbox *sandbox, uint32_t id, const error *err)
{
    struct agent_done done = { 0 };
    if (!err) {
        send_frame(sandbox, AGENT_DONE, 0, id, &done, sizeof done, NULL, 0);
        return;
    }
    done.os = err->os ? err->os : EINVAL;
    done.is_of_the_program = err->code == ERR_NOT_EXECUTABLE;
    send_frame(sandbox, AGENT_DONE, 0, id, &done, sizeof done, err->text,
               strnlen(err->text, sizeof err->text));
}
