/* sandbox.c - reads once per turn of the loop, within a time for all sandboxes: the rest is read in
 * the next turn, after the others. */
#include "engine/sandbox/sandbox.h"

#include "base/bytes.h"
#include "base/packet.h"
#include "engine/observe/loop_monitor.h"
#include "engine/sandbox/frame_reader.h"
#include "engine/schedule/loop_fairness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* One read should take no longer than this, estimated from the one before: the cost of a byte
 * varies by a factor of a thousand. */
enum { READ_US = 500, READ_MIN = 4096, READ_FIRST = 4 * READ_MIN, WAITING_MAX = 256 * 1024 };

struct sandbox {
    struct spawner_link *spawner;
    struct spawn_slot name;
    uint64_t walls, degraded;
    struct group_directories groups;
    uint64_t rest_cpu_us; /* 0: not known */
    int stream;
    uv_poll_t poll;
    int watched; /* events that the loop polls for */
    bool is_broken, is_closed, wants_room, is_muted;
    uint32_t tenant;
    struct loop_rounds rounds;
    size_t read_max;
    struct sandbox_user user;
    struct bytes waiting; /* frames to init, not sent yet */
    size_t sent;          /* bytes of `waiting` that were sent */
    unsigned gift_count;  /* descriptors for them: each is sent with the byte at `at`, in order */
    struct gift {
        int fd;
        size_t at;
    } gifts[SANDBOX_GIFTS_MAX];
    unsigned socket_count; /* of egress */
    int sockets[SANDBOX_SOCKETS_MAX];
    struct frame_reader reader;
};

static void on_event(uv_poll_t *poll, int status, int events);

static void watch(struct sandbox *sandbox, int events)
{
    if (sandbox->is_broken || sandbox->is_closed || sandbox->watched == events)
        return;
    sandbox->watched = events;
    if (events == 0)
        (void) uv_poll_stop(&sandbox->poll);
    else
        (void) uv_poll_start(&sandbox->poll, events, on_event);
}

static void give_up(struct sandbox *sandbox, const error *cause)
{
    if (sandbox->is_broken || sandbox->is_closed)
        return;
    watch(sandbox, 0);
    sandbox->is_broken = true;
    if (sandbox->user.broken)
        sandbox->user.broken(sandbox->user.context, cause);
}

void sandbox_kill(struct sandbox *sandbox, const error *cause)
{
    give_up(sandbox, cause);
}

void sandbox_freeze(struct sandbox *sandbox, bool is_frozen)
{
    spawner_freeze(sandbox->spawner, &sandbox->name, is_frozen);
}

static enum loop_cause cause_of(uint16_t kind)
{
    static const unsigned char causes[] = {
        [AGENT_OUTPUT] = CAUSE_OUTPUT, [AGENT_RESULT] = CAUSE_RESULT, [AGENT_EXECUTED] = CAUSE_END,
        [AGENT_EXITED] = CAUSE_END,    [AGENT_STOPPED] = CAUSE_END,   [AGENT_DONE] = CAUSE_END,
        [AGENT_FILE] = CAUSE_FILE,     [AGENT_DATA] = CAUSE_FILE,     [AGENT_END] = CAUSE_FILE,
        [AGENT_ENTRY] = CAUSE_FILE,    [AGENT_CHANGE] = CAUSE_FILE,   [AGENT_SKIPPED] = CAUSE_FILE,
        [AGENT_DENIAL] = CAUSE_DENIAL,
    };
    return kind < sizeof causes && causes[kind] ? (enum loop_cause) causes[kind] : CAUSE_SANDBOX;
}

static int frame_came(void *context, const struct agent_frame *frame, const unsigned char *payload,
                      error *err)
{
    struct sandbox *sandbox = context;
    if (frame->kind == AGENT_USED) {
        memcpy(&sandbox->groups.watched, payload, sizeof sandbox->groups.watched);
        return 0;
    }
    if (!sandbox->user.frame)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent an unexpected message");
    struct loop_place place = loop_enter(cause_of(frame->kind), NULL);
    int result = sandbox->user.frame(sandbox->user.context, frame, payload, err);
    loop_leave(place);
    if (result < 0)
        return -1;
    return sandbox->is_broken || sandbox->is_closed ? 1 : result;
}

/* Descriptors come only with init's hello, before any code has run. */
static void take_sockets(struct sandbox *sandbox, struct msghdr *message)
{
    unsigned room = SANDBOX_SOCKETS_MAX - sandbox->socket_count;
    unsigned came = take_descriptors(message, sandbox->sockets + sandbox->socket_count, room);
    sandbox->socket_count += came < room ? came : room;
}

static ssize_t receive(struct sandbox *sandbox, void *place, size_t room)
{
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof sandbox->sockets)];
    } rights;
    struct iovec part = { place, room };
    struct msghdr message = { .msg_iov = &part,
                              .msg_iovlen = 1,
                              .msg_control = rights.space,
                              .msg_controllen = sizeof rights.space };
    if (sandbox->reader.said_hello)
        return recv(sandbox->stream, place, room, MSG_DONTWAIT);
    ssize_t got = recvmsg(sandbox->stream, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (got > 0)
        take_sockets(sandbox, &message);
    return got;
}

unsigned sandbox_take_sockets(struct sandbox *sandbox, int ret_sockets[SANDBOX_SOCKETS_MAX])
{
    unsigned count = sandbox->socket_count;
    memcpy(ret_sockets, sandbox->sockets, count * sizeof sandbox->sockets[0]);
    sandbox->socket_count = 0;
    return count;
}

static void bound_next(struct sandbox *sandbox, size_t got, int64_t took_us)
{
    if (took_us > READ_US && sandbox->read_max > READ_MIN)
        sandbox->read_max /= 2;
    else if (took_us < READ_US / 4 && got == sandbox->read_max && got < sizeof sandbox->reader.data)
        sandbox->read_max *= 2;
}

static int read_once(struct sandbox *sandbox, error *err)
{
    size_t room;
    unsigned char *place = frame_reader_room(&sandbox->reader, &room);
    ssize_t got = receive(sandbox, place, room < sandbox->read_max ? room : sandbox->read_max);
    int64_t began_us = loop_turn_us();
    if (got < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOMEM))
        return 0; /* read again in the next turn */
    if (got < 0)
        return fail_os(err, "read from the sandbox");
    if (got == 0)
        return fail(err, ERR_PROTOCOL, "glovebox-init exited unexpectedly");
    int result = frame_reader_took(&sandbox->reader, (size_t) got, frame_came, sandbox, err);
    if (result < 0)
        return -1;
    bound_next(sandbox, (size_t) got, loop_turn_us() - began_us);
    if (sandbox->socket_count > 0 && sandbox->user.route && !sandbox->is_closed)
        sandbox->user.route(sandbox->user.context);
    return 0;
}

static void drop_gift(struct sandbox *sandbox)
{
    (void) close(sandbox->gifts[0].fd);
    sandbox->gift_count--;
    memmove(sandbox->gifts, sandbox->gifts + 1, sandbox->gift_count * sizeof sandbox->gifts[0]);
}

/* Sends bytes up to the next descriptor, or from it on: a descriptor is received with the first
 * byte of its sendmsg() (unix(7)), which is that of its frame. */
static ssize_t send_piece(struct sandbox *sandbox)
{
    struct iovec part = { sandbox->waiting.data + sandbox->sent,
                          sandbox->waiting.size - sandbox->sent };
    struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } rights;
    const struct gift *gift = sandbox->gift_count > 0 ? &sandbox->gifts[0] : NULL;
    bool is_due = gift && gift->at == sandbox->sent;
    if (is_due) {
        rights.header = (struct cmsghdr){ .cmsg_level = SOL_SOCKET,
                                          .cmsg_type = SCM_RIGHTS,
                                          .cmsg_len = CMSG_LEN(sizeof(int)) };
        memcpy(CMSG_DATA(&rights.header), &gift->fd, sizeof gift->fd);
        message.msg_control = rights.space;
        message.msg_controllen = sizeof rights.space;
        if (sandbox->gift_count > 1)
            part.iov_len = sandbox->gifts[1].at - sandbox->sent;
    } else if (gift) {
        part.iov_len = gift->at - sandbox->sent;
    }
    ssize_t wrote = sendmsg(sandbox->stream, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote > 0 && is_due)
        drop_gift(sandbox);
    return wrote;
}

static void write_waiting(struct sandbox *sandbox)
{
    while (sandbox->sent < sandbox->waiting.size) {
        ssize_t wrote = send_piece(sandbox);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            break; /* EAGAIN: wait; the reading side reports all others */
        sandbox->sent += (size_t) wrote;
    }
    bytes_drop(&sandbox->waiting, sandbox->sent);
    for (unsigned i = 0; i < sandbox->gift_count; i++)
        sandbox->gifts[i].at -= sandbox->sent;
    sandbox->sent = 0;
    watch(sandbox,
          (sandbox->is_muted ? 0 : UV_READABLE) | (sandbox->waiting.size > 0 ? UV_WRITABLE : 0));
}

static void has_read(struct sandbox *sandbox, int result, const error *why)
{
    if (sandbox->is_broken || sandbox->is_closed)
        return;
    if (result < 0)
        give_up(sandbox, why);
    else
        sandbox_flush(sandbox); /* frames that were queued as answers */
}

/* Bytes of the last read may be left. */
void sandbox_hear(struct sandbox *sandbox, bool is_heard)
{
    error err;
    sandbox->is_muted = !is_heard;
    if (!is_heard)
        watch(sandbox, sandbox->watched & UV_WRITABLE);
    else if (!sandbox->is_broken && !sandbox->is_closed)
        has_read(sandbox, frame_reader_took(&sandbox->reader, 0, frame_came, sandbox, &err), &err);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct sandbox *sandbox = poll->data;
    error err;
    (void) loop_enter(CAUSE_SANDBOX, NULL);
    if (status < 0) {
        /* libuv reports EBADF for any error of a socket. */
        (void) fail(&err, ERR_SYSTEM, "the stream to glovebox-init broke off");
        give_up(sandbox, &err);
        return;
    }
    if (events & UV_WRITABLE) {
        sandbox_flush(sandbox);
        if (sandbox->is_broken || sandbox->is_closed)
            return;
    }
    if (!(events & UV_READABLE))
        return;
    static struct loop_tenants turn = { .all_room_us = 5000, .tenant_room_us = 1000 };
    if (!loop_tenants_go_on(&turn, sandbox->tenant, &sandbox->rounds, loop_turn_number(),
                            loop_turn_us()))
        return; /* called again in the next turn */
    has_read(sandbox, read_once(sandbox, &err), &err);
}

int sandbox_open(struct spawner_link *spawner, const struct spawned *spawned,
                 struct sandbox **ret_sandbox, error *err)
{
    struct sandbox *sandbox = calloc(1, sizeof *sandbox);
    if (!sandbox)
        return fail(err, ERR_SYSTEM, "no memory for a sandbox");
    sandbox->spawner = spawner;
    sandbox->name = spawned->name;
    sandbox->tenant = spawned->tenant;
    sandbox->read_max = READ_FIRST;
    sandbox->walls = spawned->walls;
    sandbox->degraded = spawned->degraded;
    sandbox->stream = spawned->inside;
    group_directories_init(&sandbox->groups);
    memcpy(sandbox->groups.fd, spawned->groups, sizeof sandbox->groups.fd);
    sandbox->poll.data = sandbox;
    int result = uv_poll_init(spawner->loop, &sandbox->poll, sandbox->stream);
    if (result < 0) {
        free(sandbox);
        return fail(err, ERR_SYSTEM, "watch a sandbox: %s", uv_strerror(result));
    }
    watch(sandbox, UV_READABLE);
    *ret_sandbox = sandbox;
    return 0;
}

void sandbox_bound(struct sandbox *sandbox, uint64_t memory_bytes, uint64_t processes)
{
    const uint64_t held = (1ULL << WALL_cgroup_memory) | (1ULL << WALL_cgroup_pids);
    struct agent_bound bound = { 0 };
    if (sandbox->degraded & held)
        bound = counters_missing(&sandbox->groups, memory_bytes, processes);
    struct iovec part = { &bound, sizeof bound };
    if (bound.memory_bytes > 0 || bound.processes > 0)
        sandbox_send(sandbox, &(struct agent_frame){ .kind = AGENT_BOUND }, &part, 1);
}

void sandbox_use(struct sandbox *sandbox, const struct sandbox_user *user)
{
    sandbox->user = *user;
}

bool sandbox_is_broken(const struct sandbox *sandbox)
{
    return sandbox->is_broken;
}

void sandbox_ignore(struct sandbox *sandbox)
{
    sandbox->user = (struct sandbox_user){ 0 };
    watch(sandbox, 0);
}

static void on_closed(uv_handle_t *handle)
{
    struct sandbox *sandbox = handle->data;
    (void) close(sandbox->stream);
    for (unsigned i = 0; i < sandbox->socket_count; i++)
        (void) close(sandbox->sockets[i]);
    while (sandbox->gift_count > 0)
        drop_gift(sandbox);
    group_directories_done(&sandbox->groups);
    bytes_done(&sandbox->waiting);
    free(sandbox);
}

void sandbox_close(struct sandbox *sandbox)
{
    if (!sandbox || sandbox->is_closed)
        return;
    sandbox->is_closed = true;
    sandbox->user = (struct sandbox_user){ 0 };
    spawner_release(sandbox->spawner, &sandbox->name);
    uv_close((uv_handle_t *) &sandbox->poll, on_closed);
}

void sandbox_send(struct sandbox *sandbox, const struct agent_frame *frame,
                  const struct iovec *parts, int part_count)
{
    if (sandbox->is_broken || sandbox->is_closed)
        return;
    struct agent_frame header = *frame;
    header.size = 0;
    header.reserved = 0;
    for (int i = 0; i < part_count; i++)
        header.size += (uint32_t) parts[i].iov_len;
    bytes_add(&sandbox->waiting, &header, sizeof header);
    for (int i = 0; i < part_count; i++)
        bytes_add(&sandbox->waiting, parts[i].iov_base, parts[i].iov_len);
    sandbox->wants_room = !sandbox_has_room(sandbox);
}

void sandbox_send_with(struct sandbox *sandbox, const struct agent_frame *frame,
                       const struct iovec *parts, int part_count, int descriptor)
{
    if (sandbox->is_broken || sandbox->is_closed || sandbox->gift_count == SANDBOX_GIFTS_MAX)
        (void) close(descriptor);
    else
        sandbox->gifts[sandbox->gift_count++] =
            (struct gift){ .fd = descriptor, .at = sandbox->waiting.size };
    sandbox_send(sandbox, frame, parts, part_count);
}

void sandbox_flush(struct sandbox *sandbox)
{
    if (sandbox->is_broken || sandbox->is_closed)
        return;
    if (sandbox->waiting.failed) {
        error err;
        (void) fail(&err, ERR_SYSTEM, "no memory for frames to the sandbox");
        give_up(sandbox, &err);
        return;
    }
    write_waiting(sandbox);
    if (sandbox->wants_room && sandbox_has_room(sandbox)) {
        sandbox->wants_room = false;
        if (sandbox->user.room)
            sandbox->user.room(sandbox->user.context);
    }
}

bool sandbox_has_room(const struct sandbox *sandbox)
{
    return sandbox->waiting.size < WAITING_MAX;
}

void sandbox_rests(struct sandbox *sandbox)
{
    group_directories_hold(&sandbox->groups);
    sandbox->rest_cpu_us = counters_cpu_us(&sandbox->groups);
}

uint64_t sandbox_cpu_before_us(const struct sandbox *sandbox)
{
    return sandbox->rest_cpu_us ? sandbox->rest_cpu_us : counters_cpu_us(&sandbox->groups);
}

const struct spawn_slot *sandbox_name(const struct sandbox *sandbox)
{
    return &sandbox->name;
}

const struct group_directories *sandbox_groups(const struct sandbox *sandbox)
{
    return &sandbox->groups;
}

uint64_t sandbox_walls(const struct sandbox *sandbox)
{
    return sandbox->walls;
}

uint64_t sandbox_degraded(const struct sandbox *sandbox)
{
    return sandbox->degraded;
}
