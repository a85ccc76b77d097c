/* splice.c - see splice.h. */
#include "egress/splice.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* The kernel limits the total size of a user's pipes, and then makes further ones tiny (pipe(7),
 * pipe-user-pages-soft). 1,000 connections fit with small pipes. Connections with much to pass get
 * wide ones, which halve the processor time, while there are any left. */
enum {
    SMALL_PIPE = 32 << 10,
    WIDE_PIPE = 256 << 10,
    WIDE_PIPES_MAX = 64,
    MUCH = 1 << 20, /* bytes that a flow has passed */
    TURNS = 16      /* pieces before others get their turn */
};

static unsigned wide_pipes; /* one thread, one loop */

int splice_open(struct splice *flow, int from, int to)
{
    flow->from = from;
    flow->to = to;
    if (pipe2(flow->pipe, O_CLOEXEC | O_NONBLOCK) < 0)
        return -1;
    (void) fcntl(flow->pipe[1], F_SETPIPE_SZ, SMALL_PIPE);
    return 0;
}

void splice_keeps_to_host(int socket)
{
    static const char plain[] = "reno"; /* in every kernel, and allowed for every user */
    (void) setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, plain, sizeof plain - 1);
}

static void widen(struct splice *flow)
{
    if (flow->is_wide || wide_pipes == WIDE_PIPES_MAX || flow->passed < MUCH)
        return;
    flow->is_wide = true; /* tried once */
    wide_pipes++;
    (void) fcntl(flow->pipe[1], F_SETPIPE_SZ, WIDE_PIPE);
}

void splice_close(struct splice *flow)
{
    wide_pipes -= flow->is_wide;
    flow->is_wide = false;
    for (unsigned i = 0; i < 2; i++) {
        if (flow->pipe[i] >= 0)
            (void) close(flow->pipe[i]);
        flow->pipe[i] = -1;
    }
}

int splice_put(struct splice *flow, const void *bytes, size_t size)
{
    if (size == 0)
        return 0;
    ssize_t put = write(flow->pipe[1], bytes, size);
    if (put > 0)
        flow->held += (size_t) put;
    return put == (ssize_t) size ? 0 : -1;
}

/* Writes the last chunk, without the trailers that came with it. */
static void put_end_of_chunks(struct splice *flow)
{
    flow->is_ended = true;
    if (splice_put(flow, "0\r\n\r\n", 5) < 0)
        flow->fails = true;
}

/* Writes a piece of a chunked body as a new chunk. Returns bytes taken. */
static size_t put_chunks(struct splice *flow, const char *bytes, size_t size)
{
    size_t at = 0;
    while (at < size && !flow->is_ended && !flow->fails) {
        size_t used;
        char head[24];
        switch (http_chunks_take(&flow->chunks, bytes + at, size - at, &used)) {
        case CHUNK_SKIP:
            break;
        case CHUNK_DATA:
            if (used == 0)
                break;
            (void) snprintf(head, sizeof head, "%zx\r\n", used);
            flow->fails |= splice_put(flow, head, strlen(head)) < 0 ||
                           splice_put(flow, bytes + at, used) < 0 ||
                           splice_put(flow, "\r\n", 2) < 0;
            break;
        case CHUNK_END:
            put_end_of_chunks(flow);
            break;
        case CHUNK_BAD:
            flow->fails = flow->is_wrong = true;
            break;
        }
        at += used;
    }
    return at;
}

int splice_put_body(struct splice *flow, const char *bytes, size_t size)
{
    if (flow->body == SPLICE_CHUNKED)
        (void) put_chunks(flow, bytes, size);
    else if (splice_put(flow, bytes, size) < 0)
        return -1;
    else if (flow->body == SPLICE_COUNTED)
        flow->left -= size;
    return flow->fails ? -1 : 0;
}

/* Returns bytes taken from the sender, 0 at its end, -1 when there is nothing now. */
static ssize_t take_chunks(struct splice *flow, size_t max)
{
    char part[8192]; /* with its framing, it fits into the empty pipe */
    ssize_t got = recv(flow->from, part, max < sizeof part ? max : sizeof part, MSG_DONTWAIT);
    if (got > 0)
        (void) put_chunks(flow, part, (size_t) got);
    return got;
}

static ssize_t take(struct splice *flow, uint64_t max)
{
    size_t size = max < WIDE_PIPE ? (size_t) max : WIDE_PIPE;
    if (flow->body == SPLICE_CHUNKED)
        return take_chunks(flow, size);
    if (flow->body == SPLICE_COUNTED && flow->left < size)
        size = (size_t) flow->left;
    ssize_t got =
        splice(flow->from, NULL, flow->pipe[1], NULL, size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
    if (got > 0) {
        flow->held += (size_t) got;
        flow->left -= flow->body == SPLICE_COUNTED ? (uint64_t) got : 0;
    }
    return got;
}

static bool pass_on(struct splice *flow)
{
    while (flow->held > 0) {
        ssize_t put = splice(flow->pipe[0], NULL, flow->to, NULL, flow->held,
                             SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            return false;
        if (put <= 0) {
            flow->fails = true;
            /* a receiver that reads no more may still answer; other failures end both directions */
            flow->is_cut = errno != EPIPE && errno != ECONNRESET;
            return false;
        }
        flow->held -= (size_t) put;
        flow->passed += (uint64_t) put;
    }
    widen(flow);
    return true;
}

void splice_pump(struct splice *flow, uint64_t max, uint64_t *ret_taken)
{
    *ret_taken = 0;
    for (unsigned turn = 0; turn < TURNS && !flow->is_done && !flow->fails; turn++) {
        if (!pass_on(flow))
            return;
        if (flow->body == SPLICE_COUNTED && flow->left == 0)
            flow->is_ended = true;
        if (flow->is_ended) {
            flow->is_done = true;
            if (flow->body == SPLICE_ALL)
                (void) shutdown(flow->to, SHUT_WR);
            return;
        }
        if (*ret_taken >= max)
            return;
        ssize_t got = take(flow, max - *ret_taken);
        if (got < 0 && (errno == EAGAIN || errno == EINTR))
            return;
        if (got <= 0) {
            flow->is_cut = flow->body != SPLICE_ALL;
            flow->fails |= flow->is_cut;
            flow->is_ended = true;
            continue;
        }
        *ret_taken += (uint64_t) got;
    }
}

bool splice_wants_read(const struct splice *flow)
{
    return !flow->is_ended && !flow->fails && flow->held == 0;
}

/* Also true if the sender's end has been read but not passed on. */
bool splice_wants_write(const struct splice *flow)
{
    return (flow->held > 0 || (flow->is_ended && !flow->is_done)) && !flow->fails;
}
