/* packet_test.c - a message arrives complete with its descriptors, or not at all. */
#include "base/packet.h"

#include "base/cleanup.h"
#include "base/test.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void pair_open(int ends[2], int flags)
{
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0, ends) == 0,
            "socketpair: %s", strerrordesc_np(errno));
}

static int open_descriptors(void)
{
    int count = 0;
    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) >= 0;
    return count;
}

TEST(a_message_comes_whole)
{
    int ends[2];
    pair_open(ends, 0);
    auto_fd left = ends[0];
    auto_fd right = ends[1];
    error err = { 0 };
    struct packet packet;
    unsigned char body[PACKET_MAX_BYTES];
    memset(body, 'b', sizeof body);

    expect(packet_send(left, 7, body, sizeof body, NULL, 0, &err) == 0, "send: %s", err.text);
    expect(packet_receive(right, &packet, &err) == PACKET_CAME, "receive: %s", err.text);
    expect(packet.kind == 7 && packet.size == sizeof body && packet.fds == 0, "kind and size");
    expect(memcmp(packet.body, body, sizeof body) == 0, "body");

    expect(packet_send(left, 8, NULL, 0, NULL, 0, &err) == 0, "send: %s", err.text);
    expect(packet_receive(right, &packet, &err) == PACKET_CAME, "receive: %s", err.text);
    expect(packet.kind == 8 && packet.size == 0, "a message without a body");
}

TEST(descriptors_come_with_it_and_close_on_exec)
{
    int ends[2];
    pair_open(ends, 0);
    auto_fd left = ends[0];
    auto_fd right = ends[1];
    int before = open_descriptors();
    error err = { 0 };
    struct packet packet;
    int fds[PACKET_MAX_FDS];
    for (int i = 0; i < PACKET_MAX_FDS; i++)
        fds[i] = left;
    expect(packet_send(left, 1, "x", 1, fds, PACKET_MAX_FDS, &err) == 0, "send: %s", err.text);
    expect(packet_receive(right, &packet, &err) == PACKET_CAME, "receive: %s", err.text);
    expect(packet.fds == PACKET_MAX_FDS && packet.size == 1, "%u descriptors", packet.fds);
    expect(fcntl(packet.fd[0], F_GETFD) == FD_CLOEXEC, "close-on-exec");

    int taken = packet_take_fd(&packet, 3);
    expect(taken >= 0 && packet_take_fd(&packet, 3) == -1, "a descriptor is taken once");
    expect(packet_take_fd(&packet, PACKET_MAX_FDS) == -1, "one past the last");
    packet_done(&packet);
    expect(fcntl(taken, F_GETFD) == FD_CLOEXEC, "what was taken stays open");
    (void) close(taken);
    packet_done(&packet);
    expect(open_descriptors() == before, "nothing is left open");
}

TEST(too_much_is_not_sent)
{
    error err = { 0 };
    char body[PACKET_MAX_BYTES + 1] = { 0 };
    expect(packet_send(-1, 1, body, sizeof body, NULL, 0, &err) < 0 && err.code == ERR_PROTOCOL,
           "too many bytes");
    expect(packet_send(-1, 1, NULL, 0, NULL, PACKET_MAX_FDS + 1, &err) < 0 &&
               err.code == ERR_PROTOCOL,
           "too many descriptors");
    expect(packet_send(-1, 1, NULL, 0, NULL, 0, &err) < 0 && err.os == EBADF, "no socket");
}

/* Sends bytes unchanged, with the given number of copies of the socket. */
static void send_raw(int socket, size_t size, unsigned fds)
{
    static char bytes[2 * PACKET_MAX_BYTES];
    struct iovec part = { bytes, size };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int) * 64)];
    } control = { 0 };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    if (fds > 0) {
        message.msg_control = control.space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * fds);
        control.header.cmsg_level = SOL_SOCKET;
        control.header.cmsg_type = SCM_RIGHTS;
        control.header.cmsg_len = CMSG_LEN(sizeof(int) * fds);
        for (unsigned i = 0; i < fds; i++)
            memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &socket, sizeof socket);
    }
    require(sendmsg(socket, &message, MSG_NOSIGNAL) >= 0, "sendmsg: %s", strerrordesc_np(errno));
}

TEST(what_is_cut_short_or_overfull_is_refused_and_leaves_nothing)
{
    static const struct {
        size_t size;
        unsigned fds;
    } facts[] = {
        { 3, 0 }, /* no room for a kind */
        { 3, 2 },
        { PACKET_MAX_BYTES + 5, 0 },
        { PACKET_MAX_BYTES + 5, 3 },
        { 8, PACKET_MAX_FDS + 1 },
        { 8, 64 },
    };
    int ends[2];
    pair_open(ends, 0);
    auto_fd left = ends[0];
    auto_fd right = ends[1];
    int before = open_descriptors();
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        error err = { 0 };
        struct packet packet;
        send_raw(left, facts[i].size, facts[i].fds);
        int result = packet_receive(right, &packet, &err);
        expect(result == -1 && err.code == ERR_PROTOCOL, "%zu bytes, %u descriptors gave %d",
               facts[i].size, facts[i].fds, result);
        expect(open_descriptors() == before, "%u descriptors: some are left open", facts[i].fds);
    }
}

TEST(a_timeout_and_the_end_are_distinguished)
{
    int ends[2];
    pair_open(ends, SOCK_NONBLOCK);
    auto_fd right = ends[1];
    error err = { 0 };
    struct packet packet;
    expect(packet_receive(right, &packet, &err) == PACKET_NONE, "nothing has come yet");
    (void) close(ends[0]);
    expect(packet_receive(right, &packet, &err) == PACKET_CLOSED, "the peer is gone");
    expect(packet_send(right, 1, NULL, 0, NULL, 0, &err) < 0 && err.os == EPIPE, "no reader");
    expect(packet_receive(-1, &packet, &err) == -1 && err.os == EBADF, "no socket");
}

TEST(the_last_event_arrives_though_a_message_was_left_unread)
{
    for (int sends_first = 0; sends_first < 2; sends_first++) {
        int ends[2];
        pair_open(ends, SOCK_NONBLOCK);
        auto_fd right = ends[1];
        error err = { 0 };
        struct packet packet;
        expect(packet_send(right, 1, NULL, 0, NULL, 0, &err) == 0, "send: %s", err.text);
        expect(packet_send(ends[0], 2, NULL, 0, NULL, 0, &err) == 0, "send: %s", err.text);
        (void) close(ends[0]); /* the kernel resets the connection, for message 1 */
        if (sends_first)
            expect(packet_send(right, 3, NULL, 0, NULL, 0, &err) < 0 && err.os == EPIPE, "%s",
                   err.text);
        expect(packet_receive(right, &packet, &err) == PACKET_CAME && packet.kind == 2, "2 came");
        expect(packet_receive(right, &packet, &err) == PACKET_CLOSED, "the peer is gone");
    }
}

TEST(without_room_for_descriptors_a_message_is_cut_and_the_next_is_whole)
{
    int ends[2];
    struct packet packet;
    struct rlimit before, few;
    error err;
    pair_open(ends, SOCK_NONBLOCK);
    auto_fd left = ends[0], right = ends[1];
    require(packet_send(left, 7, "word", 4, &left, 1, &err) == 0, "%s", err.text);
    require(packet_send(left, 8, NULL, 0, &left, 1, &err) == 0, "%s", err.text);
    require(getrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
    few = before;
    few.rlim_cur = (rlim_t) (left > right ? left : right) + 1;
    require(setrlimit(RLIMIT_NOFILE, &few) == 0, "limit");
    int came = packet_receive(right, &packet, &err);
    expect(came == PACKET_CUT && packet.kind == 7 && packet.size == 4 && packet.fds == 0,
           "%d: kind %u with %u descriptors", came, packet.kind, packet.fds);
    require(setrlimit(RLIMIT_NOFILE, &before) == 0, "limit");
    expect(packet_receive(right, &packet, &err) == PACKET_CAME && packet.fds == 1, "the next one");
    packet_done(&packet);
}

TESTS(CASE(a_message_comes_whole),
      CASE(without_room_for_descriptors_a_message_is_cut_and_the_next_is_whole),
      CASE(descriptors_come_with_it_and_close_on_exec), CASE(too_much_is_not_sent),
      CASE(what_is_cut_short_or_overfull_is_refused_and_leaves_nothing),
      CASE(a_timeout_and_the_end_are_distinguished),
      CASE(the_last_event_arrives_though_a_message_was_left_unread))
