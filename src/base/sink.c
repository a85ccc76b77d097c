/* sink.c - see sink.h. */
#include "base/sink.h"

#include "base/base64.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

void sink_init(struct sink *sink, int fd)
{
    sink->fd = fd;
    sink->total = 0;
    sink->used = 0;
    sink->failed = 0;
}

static void send_all(struct sink *sink, const char *data, size_t size)
{
    while (size > 0 && sink->failed == 0) {
        ssize_t sent = send(sink->fd, data, size, MSG_NOSIGNAL);
        if (sent < 0) {
            if (errno != EINTR)
                sink->failed = errno;
            continue;
        }
        data += sent;
        size -= (size_t) sent;
    }
}

void sink_bytes(struct sink *sink, const void *data, size_t size)
{
    sink->total += size;
    if (sink->fd < 0)
        return;
    if (size > sizeof sink->buffer - sink->used) {
        send_all(sink, sink->buffer, sink->used);
        sink->used = 0;
    }
    if (size > sizeof sink->buffer) {
        send_all(sink, data, size);
        return;
    }
    memcpy(sink->buffer + sink->used, data, size);
    sink->used += size;
}

void sink_text(struct sink *sink, const char *text)
{
    sink_bytes(sink, text, strlen(text));
}

void sink_base64(struct sink *sink, const void *data, size_t size)
{
    char block[4096];
    sink_bytes(sink, "\"", 1);
    if (sink->fd < 0) {
        sink->total += base64_size(size) + 1;
        return;
    }
    for (size_t at = 0; at < size;) {
        size_t part = size - at < sizeof block / 4 * 3 ? size - at : sizeof block / 4 * 3;
        base64_encode((const char *) data + at, part, block);
        sink_bytes(sink, block, base64_size(part));
        at += part;
    }
    sink_bytes(sink, "\"", 1);
}

int sink_flush(struct sink *sink, error *err)
{
    if (sink->fd >= 0)
        send_all(sink, sink->buffer, sink->used);
    sink->used = 0;
    if (sink->failed != 0) {
        errno = sink->failed;
        return fail_os(err, "send the request");
    }
    return 0;
}
