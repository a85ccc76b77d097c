/* channel.c - one message is one frame; uses no Python code, which a program could change. */
#include "interpreter/channel.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

enum {
    PIECE_MAX = AGENT_PAYLOAD_MAX - sizeof(struct agent_result),
    TRIES_MAX = 10000, /* a millisecond apart */
    LINGER_MS = 20,
    HELD_MAX = 1024,
};

static int channel = -1;
static ino_t inode;
static dev_t device;

/* The value of a cell, held until its EXECUTED is sent in the same message: init wakes once. */
static struct {
    struct agent_frame head;
    struct agent_result result;
    char json[HELD_MAX];
} held;

static bool is_channel(void)
{
    struct stat now;
    return channel >= 0 && fstat(channel, &now) == 0 && now.st_ino == inode && now.st_dev == device;
}

static void forget_in_child(void)
{
    if (is_channel())
        (void) close(channel);
    channel = -1;
    held.head.size = 0;
}

void channel_open(int fd)
{
    struct stat now;
    if (fstat(fd, &now) < 0)
        return;
    inode = now.st_ino;
    device = now.st_dev;
    channel = fd;
    static bool is_registered; /* stays set in a restored process */
    if (!is_registered)
        is_registered = pthread_atfork(NULL, NULL, forget_in_child) == 0;
}

/* Gives the descriptor of a frame; -1: none. */
static int descriptor_of(struct msghdr *message)
{
    int came = -1;
    struct cmsghdr *header = CMSG_FIRSTHDR(message);
    if (header && header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof came))
        memcpy(&came, CMSG_DATA(header), sizeof came);
    return came;
}

ssize_t channel_receive(void *frame, size_t room, int *ret_descriptor)
{
    if (!is_channel()) {
        errno = EBADF;
        return -1;
    }
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    struct iovec part = { frame, room };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t size;
    for (;;) {
        message.msg_control = rights.space;
        message.msg_controllen = sizeof rights.space;
        size = recvmsg(channel, &message, MSG_CMSG_CLOEXEC);
        if (size >= 0 || errno != EAGAIN) /* made non-blocking */
            break;
        if (poll(&(struct pollfd){ .fd = channel, .events = POLLIN }, 1, -1) < 0)
            return -1;
    }
    *ret_descriptor = size < 0 ? -1 : descriptor_of(&message);
    return size;
}

/* Tries again if memory is short for a moment, or a program has made the socket non-blocking. */
static bool send_parts(const struct iovec *parts, int count)
{
    for (unsigned tries = 0; tries < TRIES_MAX; tries++) {
        if (writev(channel, parts, count) >= 0)
            return true;
        if (errno != EINTR && errno != EAGAIN && errno != ENOBUFS && errno != ENOMEM)
            return false;
        if (errno != EINTR)
            (void) nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
    }
    return false;
}

static struct iovec held_part(void)
{
    return (struct iovec){ &held, held.head.size > 0 ? sizeof held.head + held.head.size : 0 };
}

static void send_held(void)
{
    struct iovec part = held_part();
    if (part.iov_len > 0)
        (void) send_parts(&part, 1);
    held.head.size = 0;
}

void channel_send_result(uint32_t id, uint16_t what, const char *json, size_t size)
{
    if (!is_channel())
        return;
    send_held();
    for (size_t at = 0; at < size;) {
        size_t piece = size - at < PIECE_MAX ? size - at : PIECE_MAX;
        struct agent_result result = { .what = what, .last = at + piece == size };
        struct agent_frame head = { .size = (uint32_t) (sizeof result + piece),
                                    .kind = AGENT_RESULT,
                                    .id = id };
        struct iovec parts[] = { { &head, sizeof head },
                                 { &result, sizeof result },
                                 { (void *) (uintptr_t) (json + at), piece } };
        if (!send_parts(parts, 3))
            return;
        at += piece;
    }
}

void channel_hold_value(uint32_t id, const char *json, size_t size)
{
    if (size > sizeof held.json) {
        channel_send_result(id, AGENT_RESULT_VALUE, json, size);
        return;
    }
    if (!is_channel()) /* in the zygote, which runs cells to prewarm */
        return;
    send_held();
    held.head = (struct agent_frame){ .size = (uint32_t) (sizeof held.result + size),
                                      .kind = AGENT_RESULT,
                                      .id = id };
    held.result = (struct agent_result){ .what = AGENT_RESULT_VALUE, .last = 1 };
    memcpy(held.json, json, size);
}

void channel_send_executed(uint32_t id, const struct agent_executed *executed)
{
    struct agent_frame head = { .size = sizeof *executed, .kind = AGENT_EXECUTED, .id = id };
    struct iovec parts[] = { held_part(),
                             { &head, sizeof head },
                             { (void *) (uintptr_t) executed, sizeof *executed } };
    bool is_sent = is_channel() && send_parts(parts, 3);
    held.head.size = 0;
    if (!is_sent || !executed->ends)
        return;
    /* Exit would free this memory, which takes milliseconds on a processor that the answer needs:
     * wait until init kills this process. */
    (void) poll(&(struct pollfd){ .fd = channel }, 1, LINGER_MS);
}
