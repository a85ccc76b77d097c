/* socket_watcher_test.c - sockets that can be watched, and those that cannot for some time. A
 * regular file, which the kernel cannot watch, stands for a socket that it has no memory for. */
#include "outbound/socket_watcher.h"

#include "base/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

static uv_loop_t loop;
static struct watched_sockets sockets;
static int ends[2], heard, heard_of;
static bool was_readable, was_writable;

static void on_ready(void *context, int socket, bool reads, bool writes)
{
    (void) context;
    heard++;
    heard_of = socket;
    was_readable = reads;
    was_writable = writes;
    (void) watched_change(&sockets, socket, false, false);
}

/* Makes `number` a copy of `fd`, or a regular file. */
static void make(int number, int fd)
{
    int file = fd < 0 ? open("/proc/self/exe", O_RDONLY | O_CLOEXEC) : fd;
    require(file >= 0 && dup3(file, number, O_CLOEXEC) == number, "descriptor %d", number);
    if (fd < 0)
        (void) close(file);
}

static void begin(void)
{
    require(uv_loop_init(&loop) == 0 &&
                socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0,
            "a loop and a pair");
    heard = 0;
    sockets = (struct watched_sockets){ .loop = &loop, .ready = on_ready };
}

/* libuv reports a handle that is not closed. */
static void end(void)
{
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    expect(!sockets.first, "one is still watched");
    expect(uv_loop_close(&loop) == 0, "a handle is still open");
    (void) close(ends[0]);
    (void) close(ends[1]);
}

TEST(a_socket_is_heard_of_until_it_is_not_wanted)
{
    begin();
    require(watched_change(&sockets, ends[0], true, false) == 0, "it is not watched");
    require(write(ends[1], "x", 1) == 1, "a byte");
    end();
    expect(heard == 1 && heard_of == ends[0] && was_readable && !was_writable,
           "heard %d times of %d", heard, heard_of);
}

TEST(one_that_cannot_be_watched_is_tried_again)
{
    begin();
    int number = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    make(number, -1);
    expect(watched_change(&sockets, number, true, false) == 0, "the library would end all it does");
    expect(watched_change(&sockets, number, false, true) == 0, "another wish meanwhile");
    for (int i = 0; i < 2; i++) /* it fails again */
        (void) uv_run(&loop, UV_RUN_ONCE);
    expect(heard == 0 && sockets.first, "heard %d times of a file", heard);
    make(number, ends[0]);
    end();
    expect(heard == 1 && heard_of == number && was_writable && !was_readable,
           "heard %d times of %d, and not of what was wished last", heard, heard_of);
    (void) close(number);
}

TEST(one_that_is_tried_again_may_be_given_up)
{
    begin();
    int number = fcntl(ends[0], F_DUPFD_CLOEXEC, 0);
    make(number, -1);
    require(watched_change(&sockets, ends[1], false, true) == 0 &&
                watched_change(&sockets, number, true, true) == 0,
            "two");
    expect(watched_change(&sockets, number, false, false) == 0, "it is not given up");
    make(number, ends[0]);
    end();
    expect(heard == 1 && heard_of == ends[1], "heard %d times, of %d", heard, heard_of);
    (void) close(number);
}

TESTS(CASE(a_socket_is_heard_of_until_it_is_not_wanted),
      CASE(one_that_cannot_be_watched_is_tried_again),
      CASE(one_that_is_tried_again_may_be_given_up))
