/* mcp_stdio_fuzz.c - any bytes on the stdin of `glovebox mcp`, and any bytes as what the daemon
 * answers: it comes to its end, what it writes are whole lines, and no descriptor stays.
 *
 * An input is stdin, then the answers to one message after the other, with 0x1E between them. */
#include "dice.h"

#include "cli/mcp/mcp_bridge.h"

#include <stdio.h>
#include <sys/mman.h>

enum { CONNECTIONS_MAX = 64, INPUT_MAX = 32 * 1024 };

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

static const uint8_t *answers;
static size_t answers_left;
static int ours[CONNECTIONS_MAX];
static unsigned connection_count;

static size_t take_answer(const uint8_t **ret_answer)
{
    const uint8_t *end = answers_left > 0 ? memchr(answers, 0x1E, answers_left) : NULL;
    size_t size = end ? (size_t) (end - answers) : answers_left;
    *ret_answer = answers;
    answers += size + (end ? 1 : 0);
    answers_left -= size + (end ? 1 : 0);
    return size;
}

/* The daemon's end has said all that it will when it is connected to. The first connection stays:
 * it says that the process lives. */
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    static const char head[] = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                               "Transfer-Encoding: chunked\r\n\r\n";
    int pair[2];
    const uint8_t *answer = (const uint8_t *) head;
    (void) address, (void) size;
    if (connection_count == CONNECTIONS_MAX) {
        errno = EAGAIN;
        return -1;
    }
    size_t length = connection_count == 0 ? sizeof head - 1 : take_answer(&answer);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0 || dup2(pair[0], fd) < 0)
        abort();
    (void) close(pair[0]);
    if (length > 0 &&
        send(pair[1], answer, length, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t) length)
        abort();
    if (connection_count > 0)
        (void) shutdown(pair[1], SHUT_WR);
    ours[connection_count++] = pair[1];
    return 0;
}

static void check_output(int output)
{
    char last = '\n';
    off_t size = lseek(output, 0, SEEK_END);
    assert(size >= 0);
    if (size > 0)
        assert(pread(output, &last, 1, size - 1) == 1);
    assert(last == '\n');
}

static int file_of(const uint8_t *data, size_t size)
{
    int fd = memfd_create("stdin", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, data, size) == (ssize_t) size && lseek(fd, 0, SEEK_SET) == 0);
    return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    error err;
    if (size > INPUT_MAX)
        return 0;
    const uint8_t *input;
    answers = data;
    answers_left = size;
    connection_count = 0;
    size_t input_size = take_answer(&input);
    int in = file_of(input, input_size), out = file_of(NULL, 0);
    if (dup2(in, STDIN_FILENO) < 0 || dup2(out, STDOUT_FILENO) < 0)
        abort();
    unsigned before = descriptors_open();
    struct bridge bridge = { .stream = -1, .files.folder = -1 };
    (void) snprintf(bridge.id, sizeof bridge.id, "%032d", 0);
    assert(bridge_run(&bridge, &err) == 0);
    assert(!bridge.posts && bridge.post_count == 0);
    check_output(out);
    for (unsigned i = 0; i < connection_count; i++)
        (void) close(ours[i]);
    assert(descriptors_open() == before);
    (void) close(in);
    (void) close(out);
    return 0;
}
