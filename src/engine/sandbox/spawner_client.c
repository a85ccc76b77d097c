/* spawner_client.c - packets to and from the spawner; the table of its messages. */
#include "engine/sandbox/spawner_client.h"

#include "base/cleanup.h"
#include "base/open_files.h"
#include "base/packet.h"
#include "base/table.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PACKETS_A_TURN = 32 };

struct waiting_build {
    uint64_t request;
    uint32_t tenant;
    spawner_built *built;
    void *context;
    struct waiting_build *next;
};

struct unsent {
    uint32_t kind;
    size_t size;
    struct unsent *next;
    unsigned char body[sizeof(struct spawn_build)];
};

static void lose(struct spawner_link *link, const char *why);
static void on_event(uv_poll_t *poll, int status, int events);

static struct waiting_build *take_build(struct spawner_link *link, uint64_t request)
{
    for (struct waiting_build **at = &link->builds; *at; at = &(*at)->next) {
        if ((*at)->request != request)
            continue;
        struct waiting_build *found = *at;
        *at = found->next;
        return found;
    }
    return NULL;
}

static int hear_hello(struct spawner_link *link, struct packet *packet, error *err)
{
    if (link->said_hello)
        return fail(err, ERR_PROTOCOL, "a second hello");
    memcpy(&link->hello, packet->body, sizeof link->hello);
    if (link->hello.version != SPAWN_VERSION)
        return fail(err, ERR_PROTOCOL, "it has protocol version %u, gloveboxd has %d",
                    link->hello.version, SPAWN_VERSION);
    if (link->hello.slots == 0 || (link->hello.groups >> GROUPS) != 0)
        return fail(err, ERR_PROTOCOL, "a hello with %u slots and groups 0x%x", link->hello.slots,
                    link->hello.groups);
    link->said_hello = true;
    link->watcher.hello(link->watcher.context);
    return 0;
}

/* The directories come in the order of the bits. */
static int take_spawned(const struct spawn_built *built, struct packet *packet,
                        struct spawned *ret_spawned, error *err)
{
    unsigned groups = (unsigned) __builtin_popcount(built->groups);
    if ((built->groups >> GROUPS) != 0 || packet->fds != 2 + groups ||
        ((built->walls | built->degraded) >> WALLS) != 0)
        return fail(err, ERR_PROTOCOL, "a sandbox with %u descriptors and groups 0x%x", packet->fds,
                    built->groups);
    *ret_spawned = (struct spawned){
        .name = { .slot = built->slot, .generation = built->generation },
        .walls = built->walls,
        .degraded = built->degraded,
        .inside = packet_take_fd(packet, 0),
    };
    unsigned index = 2; /* descriptor 1 is init's pidfd: SPAWN_LOST reports its end */
    for (unsigned kind = 0; kind < GROUPS; kind++)
        ret_spawned->groups[kind] =
            built->groups & (1U << kind) ? packet_take_fd(packet, index++) : -1;
    return 0;
}

/* The sandbox was built, but its descriptors were lost. The caller gets the failure; no release is
 * reported to it. */
static void give_back(struct spawner_link *link, const struct spawn_built *built, error *ret_cause)
{
    const struct spawn_slot name = { .slot = built->slot, .generation = built->generation };
    if (link->given_back_count < SPAWNER_GIVEN_BACK_MAX)
        link->given_back[link->given_back_count++] = name;
    spawner_release(link, &name);
    (void) fail(ret_cause, ERR_BUSY,
                "gloveboxd has no descriptors left for another sandbox (RLIMIT_NOFILE); try again "
                "when sessions or connections have ended, or raise its limit");
}

static bool leaves_room(const struct spawner_link *link, const struct packet *packet)
{
    for (unsigned i = 0; i < packet->fds; i++)
        if (!open_files_leave_room(link->files_max, packet->fd[i]))
            return false;
    return true;
}

static int hear_built(struct spawner_link *link, struct packet *packet, error *err)
{
    struct spawn_built built;
    memcpy(&built, packet->body, sizeof built);
    built.err.text[sizeof built.err.text - 1] = '\0';
    struct waiting_build *build = take_build(link, built.request);
    if (!build)
        return fail(err, ERR_PROTOCOL, "build %llu was not asked for",
                    (unsigned long long) built.request);
    struct waiting_build asked = *build;
    free(build);

    if (built.err.code != ERR_NONE) {
        asked.built(asked.context, NULL, &built.err);
        return 0;
    }
    if (link->is_cut || !leaves_room(link, packet)) {
        error cause;
        give_back(link, &built, &cause);
        asked.built(asked.context, NULL, &cause);
        return 0;
    }
    struct spawned spawned;
    if (take_spawned(&built, packet, &spawned, err) < 0) {
        asked.built(asked.context, NULL, err);
        return -1;
    }
    spawned.tenant = asked.tenant;
    asked.built(asked.context, &spawned, NULL);
    return 0;
}

static int hear_released(struct spawner_link *link, struct packet *packet, error *err)
{
    (void) err;
    struct spawn_released released;
    memcpy(&released, packet->body, sizeof released);
    for (unsigned i = 0; i < link->given_back_count; i++)
        if (link->given_back[i].slot == released.slot &&
            link->given_back[i].generation == released.generation) {
            link->given_back[i] = link->given_back[--link->given_back_count];
            return 0;
        }
    link->watcher.released(link->watcher.context, &released);
    return 0;
}

static int hear_lost(struct spawner_link *link, struct packet *packet, error *err)
{
    (void) err;
    struct spawn_slot name;
    memcpy(&name, packet->body, sizeof name);
    link->watcher.lost(link->watcher.context, &name);
    return 0;
}

/* All messages of the spawner. */
static const struct hearing {
    size_t size;
    bool with_fds;
    int (*hear)(struct spawner_link *, struct packet *, error *);
} hearings[] = {
    [SPAWN_HELLO] = { sizeof(struct spawn_hello), false, hear_hello },
    [SPAWN_BUILT] = { sizeof(struct spawn_built), true, hear_built },
    [SPAWN_RELEASED] = { sizeof(struct spawn_released), false, hear_released },
    [SPAWN_LOST] = { sizeof(struct spawn_slot), false, hear_lost },
};

static int hear(struct spawner_link *link, struct packet *packet, error *err)
{
    if (packet->kind >= COUNT_OF(hearings) || !hearings[packet->kind].hear)
        return fail(err, ERR_PROTOCOL, "message %u does not exist", packet->kind);
    const struct hearing *hearing = &hearings[packet->kind];
    if (packet->size != hearing->size || (packet->fds > 0 && !hearing->with_fds))
        return fail(err, ERR_PROTOCOL, "message %u is malformed", packet->kind);
    return hearing->hear(link, packet, err);
}

static void hear_all(struct spawner_link *link)
{
    error err;
    for (int turn = 0; turn < PACKETS_A_TURN && link->is_open; turn++) {
        struct packet packet;
        int came = packet_receive(link->socket, &packet, &err);
        if (came == PACKET_NONE)
            return;
        if (came == PACKET_CLOSED) {
            lose(link, "it ended");
            return;
        }
        link->is_cut = came == PACKET_CUT;
        if (link->is_cut)
            log_event(SPAWNER_PACKET_CUT,
                      TEXT("cause", "no free descriptors for those of the packet"));
        int heard = came < 0 ? -1 : hear(link, &packet, &err);
        if (came == PACKET_CAME)
            packet_done(&packet);
        if (heard < 0) {
            lose(link, err.text);
            return;
        }
    }
}

static void watch(struct spawner_link *link)
{
    int events = UV_READABLE | (link->unsent ? UV_WRITABLE : 0);
    (void) uv_poll_start(&link->poll, events, on_event); /* fails only for a closing handle */
}

/* Returns 0, 1 if the socket is full or the kernel lacks memory, -1 if the spawner has ended. The
 * loop notices that later by itself, so that no sandbox ends in the middle of a request. */
static int send_now(struct spawner_link *link, uint32_t kind, const void *body, size_t size)
{
    error err;
    if (packet_send(link->socket, kind, body, size, NULL, 0, &err) == 0)
        return 0;
    if (err.os == EAGAIN || err.os == ENOBUFS || err.os == ENOMEM)
        return 1;
    return -1;
}

static void send_unsent(struct spawner_link *link)
{
    while (link->is_open && link->unsent) {
        struct unsent *first = link->unsent;
        if (send_now(link, first->kind, first->body, first->size) != 0)
            break;
        link->unsent = first->next;
        if (!link->unsent)
            link->unsent_end = &link->unsent;
        free(first);
    }
    if (link->is_open)
        watch(link);
}

static void on_event(uv_poll_t *poll, int status, int events)
{
    struct spawner_link *link = poll->data;
    (void) loop_enter(CAUSE_SPAWNER, NULL);
    if (status < 0) {
        lose(link, "its socket broke off"); /* libuv reports EBADF for any error */
        return;
    }
    if (events & UV_WRITABLE)
        send_unsent(link);
    if (link->is_open)
        hear_all(link);
}

static int ask(struct spawner_link *link, uint32_t kind, const void *body, size_t size, error *err)
{
    if (!link->is_open)
        return fail(err, ERR_UNAVAILABLE,
                    "glovebox-spawner has ended and is being restarted; try again in a second");
    int sent = link->unsent ? 1 : send_now(link, kind, body, size);
    if (sent < 0)
        return fail(err, ERR_UNAVAILABLE,
                    "glovebox-spawner has ended and is being restarted; try again in a second");
    if (sent == 0)
        return 0;

    struct unsent *later = calloc(1, sizeof *later);
    if (!later)
        return fail(err, ERR_SYSTEM, "no memory for a request to glovebox-spawner");
    later->kind = kind;
    later->size = size;
    memcpy(later->body, body, size);
    *link->unsent_end = later;
    link->unsent_end = &later->next;
    watch(link);
    return 0;
}

int spawner_open(struct spawner_link *link, uv_loop_t *loop, int socket,
                 const struct spawner_watcher *watcher, error *err)
{
    *link = (struct spawner_link){ .loop = loop, .socket = socket, .watcher = *watcher };
    link->files_max = open_files_raise();
    link->unsent_end = &link->unsent;
    link->poll.data = link;
    int result = uv_poll_init(loop, &link->poll, socket); /* makes it non-blocking */
    if (result < 0)
        return fail(err, ERR_SYSTEM, "watch the spawner's socket: %s", uv_strerror(result));
    link->is_open = true;
    watch(link);
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct spawner_link *link = handle->data;
    (void) close(link->socket);
    link->socket = -1;
}

void spawner_close(struct spawner_link *link)
{
    if (!link->is_open)
        return;
    link->is_open = false;
    while (link->unsent) {
        struct unsent *next = link->unsent->next;
        free(link->unsent);
        link->unsent = next;
    }
    link->unsent_end = &link->unsent;
    uv_close((uv_handle_t *) &link->poll, on_closed);
}

static void lose(struct spawner_link *link, const char *why)
{
    if (!link->is_open)
        return;
    log_event(SPAWNER_EXITED, TEXT("cause", why));
    spawner_close(link);
    error cause;
    (void) fail(&cause, ERR_UNAVAILABLE,
                "glovebox-spawner has ended (%s) and is being restarted; try again in a second",
                why);
    while (link->builds) {
        struct waiting_build *build = link->builds;
        link->builds = build->next;
        build->built(build->context, NULL, &cause);
        free(build);
    }
    link->watcher.gone(link->watcher.context);
}

int spawner_build(struct spawner_link *link, struct spawn_build *build, spawner_built *built,
                  void *context, error *err)
{
    struct waiting_build *waiting = calloc(1, sizeof *waiting);
    if (!waiting)
        return fail(err, ERR_SYSTEM, "no memory for a build");
    build->request = ++link->last_request;
    if (ask(link, SPAWN_BUILD, build, sizeof *build, err) < 0) {
        free(waiting);
        return -1;
    }
    *waiting = (struct waiting_build){ .request = build->request,
                                       .tenant = build->tenant,
                                       .built = built,
                                       .context = context,
                                       .next = link->builds };
    link->builds = waiting;
    return 0;
}

/* A spawner that has ended needs no message: its sandboxes end with it. */
static void ask_of_slot(struct spawner_link *link, uint32_t kind, const struct spawn_slot *name)
{
    error err;
    if (ask(link, kind, name, sizeof *name, &err) < 0)
        log_event(SPAWNER_REQUEST_FAILED, TEXT("cause", err.text));
}

void spawner_freeze(struct spawner_link *link, const struct spawn_slot *name, bool is_frozen)
{
    ask_of_slot(link, is_frozen ? SPAWN_FREEZE : SPAWN_THAW, name);
}

void spawner_schedule(struct spawner_link *link, const struct spawn_slot *name, bool is_idle)
{
    ask_of_slot(link, is_idle ? SPAWN_IDLE : SPAWN_USUAL, name);
}

void spawner_release(struct spawner_link *link, const struct spawn_slot *name)
{
    ask_of_slot(link, SPAWN_RELEASE, name);
}

int spawner_template(int socket, const struct spawn_template *template, const int *fds, error *err)
{
    return packet_send(socket, SPAWN_TEMPLATE, template, sizeof *template, fds, fds ? 2 : 0, err);
}

int spawner_inject(struct spawner_link *link, const struct spawn_slot *name, uint32_t id,
                   error *err)
{
    struct spawn_inject inject = { .slot = name->slot, .generation = name->generation, .id = id };
    return ask(link, SPAWN_INJECT, &inject, sizeof inject, err);
}
