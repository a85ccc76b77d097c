/* packet.c - sendmsg and recvmsg with every length checked. */
#include "base/packet.h"

#include "base/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/* NOLINTNEXTLINE(readability-function-size): what a message consists of */
int packet_send(int socket, uint32_t kind, const void *body, size_t size, const int *fds,
                unsigned fd_count, error *err)
{
    if (size > PACKET_MAX_BYTES || fd_count > PACKET_MAX_FDS)
        return fail(err, ERR_PROTOCOL, "message %u of %zu bytes and %u descriptors is too large",
                    kind, size, fd_count);

    struct iovec parts[2] = {
        { .iov_base = &kind, .iov_len = sizeof kind },
        { .iov_base = (void *) (uintptr_t) body, .iov_len = size },
    };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * PACKET_MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = parts, .msg_iovlen = size > 0 ? 2 : 1 };
    if (fd_count > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
        memcpy(CMSG_DATA(header), fds, sizeof(int) * fd_count);
    }

    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && (errno == EINTR || errno == ECONNRESET)); /* then EPIPE: see below */
    return sent < 0 ? fail_os(err, "send message %u", kind) : 0;
}

unsigned take_descriptors(struct msghdr *message, int *ret_fds, unsigned max)
{
    unsigned came = 0;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header;
         header = CMSG_NXTHDR(message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS)
            continue;
        size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(header) + i * sizeof fd, sizeof fd);
            if (came++ < max)
                ret_fds[came - 1] = fd;
            else
                (void) close(fd);
        }
    }
    return came;
}

int packet_receive(int socket, struct packet *packet, error *err)
{
    packet->kind = 0;
    packet->size = 0;
    packet->fds = 0;
    struct iovec parts[2] = {
        { .iov_base = &packet->kind, .iov_len = sizeof packet->kind },
        { .iov_base = packet->body, .iov_len = sizeof packet->body },
    };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * PACKET_MAX_FDS)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = parts,
                              .msg_iovlen = 2,
                              .msg_control = control.space,
                              .msg_controllen = sizeof control.space };

    /* If the peer closes with unread messages, the kernel reports ECONNRESET once, before the last
     * messages of the peer can be read (sk_err of the socket). */
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got < 0 && (errno == EAGAIN || errno == ENOMEM || errno == ENOBUFS))
        return PACKET_NONE; /* the kernel lacked memory: the message stays in the socket */
    if (got < 0)
        return fail_os(err, "receive a message");
    if (got == 0)
        return PACKET_CLOSED;

    unsigned came = take_descriptors(&message, packet->fd, PACKET_MAX_FDS);
    packet->fds = came < PACKET_MAX_FDS ? came : PACKET_MAX_FDS;
    bool is_cut = message.msg_flags & MSG_CTRUNC;
    bool is_malformed = came > PACKET_MAX_FDS || (is_cut && came == PACKET_MAX_FDS) ||
                        (message.msg_flags & MSG_TRUNC) || (size_t) got < sizeof packet->kind;
    if (is_cut || is_malformed)
        packet_done(packet);
    if (is_malformed)
        return fail(err, ERR_PROTOCOL, "a message of %zd bytes is truncated or too large", got);
    packet->size = (size_t) got - sizeof packet->kind;
    return is_cut ? PACKET_CUT : PACKET_CAME;
}

void packet_done(struct packet *packet)
{
    for (unsigned i = 0; i < packet->fds; i++)
        close_fd(&packet->fd[i]);
    packet->fds = 0;
}

int packet_take_fd(struct packet *packet, unsigned index)
{
    return index < packet->fds ? take_fd(&packet->fd[index]) : -1;
}
