/* bridge.c - the loop between stdin, stdout and the daemon. It reads only what it can pass on:
 * while the host does not read its answers, stdin is not read. */
#include "cli/mcp/mcp_bridge.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "http1/client.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { STDIN_BLOCK = 64 * 1024, STDOUT_MAX = 8 << 20, DRAIN_MS = 1000, HEAD_MS = 10000 };
enum { IN, OUT, STREAM, FIRST_POST };

/* Opens the connection that tells the daemon that this process lives. When it closes, for whatever
 * reason, the daemon ends all that was begun through this process. */
static int open_stream(struct bridge *bridge, error *err)
{
    static struct http http;
    auto_bytes head = { 0 };
    int fd = -1;
    if (bridge_dial(bridge, &fd, err) < 0)
        return -1;
    http_init(&http, fd, -1);
    http.until = deadline_in(HEAD_MS);
    bytes_print(&head,
                "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n"
                "Glovebox-Process: %s\r\n",
                bridge->id);
    if (bridge->key)
        bytes_print(&head, "Authorization: Bearer %s\r\n", bridge->key);
    if (bridge->files.folder >= 0)
        bytes_print(&head, "Glovebox-Files: %s\r\n",
                    bridge->files.may_write ? "read-write" : "read");
    bytes_add_text(&head, "\r\n");
    if (send(fd, bytes_text(&head), head.size, MSG_NOSIGNAL) != (ssize_t) head.size ||
        http_receive(&http, err) != 0) {
        http_done(&http);
        return fail(err, ERR_UNAVAILABLE, "the daemon does not answer; see its log");
    }
    if (http.status == 200) {
        bridge->stream = fd;
        return 0;
    }
    int status = http.status;
    http_done(&http);
    return fail(err, status == 401 ? ERR_UNAUTHORIZED : ERR_UNAVAILABLE,
                status == 401 ? "the daemon wants a key that it knows: set GLOVEBOX_API_KEY; "
                                "make one with: glovebox key create"
                              : "the daemon answers with HTTP status %d; is it of this version?",
                status);
}

static void take_lines(struct bridge *bridge)
{
    size_t at = 0;
    for (;;) {
        const char *from = bridge->line.data + at;
        const char *end =
            bridge->line.size > at ? memchr(from, '\n', bridge->line.size - at) : NULL;
        if (!end || bridge->post_count >= BRIDGE_POSTS_MAX)
            break;
        size_t size = (size_t) (end - from);
        if (!bridge->line_is_lost && strspn(from, " \t\r") < size)
            bridge_send(bridge, from, size);
        bridge->line_is_lost = false;
        at += size + 1;
    }
    bytes_drop(&bridge->line, at);
}

static void lose_line(struct bridge *bridge)
{
    static const char told[] =
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32600,\"message\":"
        "\"a message has more than 64 MiB\"}}";
    if (!bridge->line_is_lost)
        bridge_tell(bridge, told, sizeof told - 1);
    bridge->line_is_lost = true;
    bridge->line.size = 0;
}

/* Returns -1 at the end of stdin. */
static int read_stdin(struct bridge *bridge)
{
    char *room = bytes_reserve(&bridge->line, STDIN_BLOCK);
    ssize_t got = room ? read(STDIN_FILENO, room, STDIN_BLOCK) : 0;
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (got <= 0)
        return -1;
    bridge->line.size += (size_t) got;
    take_lines(bridge);
    if (bridge->line.size > BRIDGE_LINE_MAX)
        lose_line(bridge);
    return 0;
}

/* Writes only as much as a pipe that is ready accepts without blocking: stdout may be shared with
 * other processes, so it is not made non-blocking. */
static int write_stdout(struct bridge *bridge)
{
    size_t left = bridge->out.size - bridge->written;
    ssize_t sent =
        write(STDOUT_FILENO, bridge->out.data + bridge->written, left < PIPE_BUF ? left : PIPE_BUF);
    if (sent < 0 && (errno == EINTR || errno == EAGAIN))
        return 0;
    if (sent < 0)
        return -1;
    bridge->written += (size_t) sent;
    if (bridge->written == bridge->out.size)
        bridge->out.size = bridge->written = 0;
    return 0;
}

/* Fills `fds` for poll(2). Returns how many it has set. */
static nfds_t watch(const struct bridge *bridge, struct pollfd fds[FIRST_POST + BRIDGE_POSTS_MAX])
{
    size_t waiting = bridge->out.size - bridge->written;
    bool is_full = waiting > STDOUT_MAX;
    nfds_t count = FIRST_POST;
    bool reads = !is_full && !bridge->is_ending && bridge->post_count < BRIDGE_POSTS_MAX;
    fds[IN] = (struct pollfd){ reads ? STDIN_FILENO : -1, POLLIN, 0 };
    fds[OUT] = (struct pollfd){ STDOUT_FILENO, waiting > 0 ? POLLOUT : 0, 0 };
    fds[STREAM] = (struct pollfd){ bridge->stream, POLLIN, 0 };
    for (const struct post *post = bridge->posts; post; post = post->next) {
        bool has_more = post->request.size > 0;
        short events = (short) ((is_full ? 0 : POLLIN) | (has_more ? POLLOUT : 0));
        fds[count++] = (struct pollfd){ post->fd, events, 0 };
    }
    return count;
}

static void serve_posts(struct bridge *bridge, const struct pollfd *fds)
{
    for (struct post *post = bridge->posts; post; post = post->next, fds++) {
        if ((fds->revents & POLLOUT) && post->request.size > 0)
            post_write(post);
        if ((fds->revents & (POLLIN | POLLHUP | POLLERR)) && !post->is_over)
            post_read(bridge, post);
    }
    posts_clean(bridge);
}

/* The daemon sends comments to keep the stream open. If the stream ends, the daemon has ended. */
static int read_stream(struct bridge *bridge, error *err)
{
    char block[512];
    ssize_t got = recv(bridge->stream, block, sizeof block, MSG_DONTWAIT);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)))
        return 0;
    return fail(err, ERR_UNAVAILABLE, "the daemon has gone");
}

static bool goes_on(const struct bridge *bridge, deadline end)
{
    if (!bridge->is_ending)
        return true;
    return (bridge->posts || bridge->out.size > 0) && !deadline_has_passed(end);
}

static int loop(struct bridge *bridge, error *err)
{
    struct pollfd fds[FIRST_POST + BRIDGE_POSTS_MAX];
    deadline end = { 0 };
    while (goes_on(bridge, end)) {
        nfds_t count = watch(bridge, fds);
        int patience = bridge->is_ending ? (int) deadline_left_ms(end) : -1;
        if (poll(fds, count, patience) < 0 && errno != EINTR)
            return fail_os(err, "wait for messages");
        if (fds[OUT].revents & (POLLERR | POLLNVAL))
            return 0;
        if ((fds[OUT].revents & POLLOUT) && bridge->out.size > 0 && write_stdout(bridge) < 0)
            return 0;
        serve_posts(bridge, fds + FIRST_POST);
        if ((fds[STREAM].revents & (POLLIN | POLLHUP)) && read_stream(bridge, err) < 0)
            return -1;
        bool came = fds[IN].revents & (POLLIN | POLLHUP | POLLERR);
        if (came && read_stdin(bridge) < 0) {
            bridge->is_ending = true;
            end = deadline_in(DRAIN_MS);
        } else if (!came && bridge->line.size > 0) {
            take_lines(bridge); /* lines that waited for a free post */
        }
    }
    return 0;
}

int bridge_run(struct bridge *bridge, error *err)
{
    if (open_stream(bridge, err) < 0)
        return -1;
    int result = loop(bridge, err);
    bridge_end_posts(bridge);
    close_fd(&bridge->stream);
    bytes_done(&bridge->line);
    bytes_done(&bridge->out);
    return result;
}
