/* log_writer.c - see log_writer.h. */
#include "engine/observe/log_writer.h"

#include "engine/observe/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LAST_MOMENT_MS = 200 };

static int own = -1; /* stderr, opened a second time */
static bool is_socket;
static char waiting[LOG_WAITING_MAX];
size_t log_writer_waiting;
static uint64_t dropped;

void log_writer_open(void)
{
    struct stat status;
    if (fstat(STDERR_FILENO, &status) < 0)
        return;
    is_socket = S_ISSOCK(status.st_mode);
    /* Not for a file: a second open file description would have its own offset. */
    if (own < 0 && (S_ISFIFO(status.st_mode) || S_ISCHR(status.st_mode)))
        own = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

/* If stderr could not be opened a second time: a pipe that polls as writable has room for a page,
 * and a line is shorter (pipe(7)). */
static ssize_t write_now(const char *data, size_t size)
{
    struct pollfd ready = { .fd = STDERR_FILENO, .events = POLLOUT };
    if (own >= 0)
        return write(own, data, size);
    if (is_socket)
        return send(STDERR_FILENO, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (poll(&ready, 1, 0) == 1)
        return write(STDERR_FILENO, data, size);
    errno = EAGAIN;
    return -1;
}

/* How many bytes to write at once: whole lines, as many as a pipe takes atomically. */
static size_t next_size(void)
{
    if (log_writer_waiting <= PIPE_BUF)
        return log_writer_waiting;
    const char *end = memrchr(waiting, '\n', PIPE_BUF);
    return end ? (size_t) (end - waiting) + 1 : PIPE_BUF;
}

static void forget_first(size_t size)
{
    log_writer_waiting -= size;
    memmove(waiting, waiting + size, log_writer_waiting);
}

void log_writer_write_waiting(void)
{
    while (log_writer_waiting > 0) {
        ssize_t wrote = write_now(waiting, next_size());
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0 && errno != EAGAIN)
            wrote = (ssize_t) next_size(); /* not read any more: dropped */
        if (wrote <= 0)
            return;
        forget_first((size_t) wrote);
    }
}

void log_writer(const char *line, size_t size)
{
    ssize_t wrote = 0;
    log_writer_flush();
    if (log_writer_waiting == 0)
        wrote = write_now(line, size);
    if (wrote == (ssize_t) size || (wrote < 0 && errno != EAGAIN && errno != EINTR))
        return;
    if (wrote > 0) {
        line += wrote;
        size -= (size_t) wrote;
    }
    if (log_writer_waiting + size > sizeof waiting) {
        dropped++;
        metric_add(METRIC_LOG_DROPPED, 0, 1);
        return;
    }
    memcpy(waiting + log_writer_waiting, line, size);
    log_writer_waiting += size;
}

uint64_t log_writer_take_dropped(void)
{
    uint64_t count = log_writer_waiting < sizeof waiting / 2 ? dropped : 0;
    dropped -= count;
    return count;
}

void log_writer_close(void)
{
    struct pollfd ready = { .fd = own >= 0 ? own : STDERR_FILENO, .events = POLLOUT };
    log_writer_flush();
    if (log_writer_waiting > 0 && poll(&ready, 1, LAST_MOMENT_MS) == 1)
        log_writer_flush();
}
