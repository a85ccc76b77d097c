/* zygotes.c - warmed interpreters: started by a template's fork server when first asked for, one
 * for each import set and tenant, and replaced from time to time, since all their children share
 * one address layout and one hash seed. The replacement warms up next to the old one, so that
 * no sandbox waits for it. */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "spawner/spawner.h"

#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { FORKS_MAX = 2000, AGE_MAX_MS = 10 * 60 * 1000 };

static void zygote_end(struct zygote *zygote)
{
    if (zygote->socket >= 0)
        (void) close(zygote->socket); /* the zygote reads the end of its socket, and exits */
    *zygote = (struct zygote){ .socket = -1 };
}

/* Gives an entry for one more: a free one, or that of the oldest zygote that no sandbox waits for.
 * NULL: a sandbox waits for each of them. */
static struct zygote *find_place(struct spawner *spawner)
{
    struct zygote *oldest = NULL;
    for_each(zygote, spawner->zygotes) {
        if (zygote->socket < 0)
            return zygote;
        if (zygote->unanswered == 0 && (!oldest || zygote->started_ms < oldest->started_ms))
            oldest = zygote;
    }
    return oldest;
}

static int zygote_start(struct spawner *spawner, const struct zygote *wanted, struct zygote *place,
                        error *err)
{
    int pair[2];
    if (!place)
        return fail(err, ERR_BUSY, "all %d zygotes are busy; try again", ZYGOTES_MAX);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket for a zygote");
    auto_fd ours = pair[0], theirs = pair[1];
    struct zygote fresh = { .template = wanted->template,
                            .set = wanted->set,
                            .tenant = wanted->tenant }; /* `wanted` may be in this entry */
    struct build_zygote order = { .index = fresh.set };
    if (fcntl(ours, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "make a socket for a zygote");
    if (packet_send(spawner->templates[wanted->template].fork_server_socket, BUILD_ZYGOTE, &order,
                    sizeof order, &theirs, 1, err) < 0)
        return under(err, "start a zygote");
    if (watch(spawner, ours, WATCH_ZYGOTE, (uint32_t) (place - spawner->zygotes), err) < 0)
        return -1;
    zygote_end(place);
    fresh.socket = take_fd(&ours);
    fresh.started_ms = now_ms();
    *place = fresh;
    return 0;
}

/* Finds another than `wanted` with its set and tenant; a ready one before one that warms up. */
static struct zygote *zygote_find(struct spawner *spawner, const struct zygote *wanted)
{
    struct zygote *found = NULL;
    for_each(zygote, spawner->zygotes)
        if (zygote != wanted && zygote->socket >= 0 && !zygote->is_old &&
            zygote->template == wanted->template && zygote->set == wanted->set &&
            zygote->tenant == wanted->tenant && (!found || (zygote->ready && !found->ready)))
            found = zygote;
    return found;
}

/* ZYGOTE_FORK; zygote_speaks() gets the answer, which a zygote that warms up gives when it is done.
 */
int fork_interpreter(struct spawner *spawner, struct slot *slot, error *err)
{
    const struct spawn_build *build = &slot->build;
    struct zygote wanted = { .template = build->template,
                             .set = build->zygote,
                             .tenant = build->tenant };
    struct zygote *zygote = zygote_find(spawner, &wanted);
    if (!zygote) {
        zygote = find_place(spawner);
        if (zygote_start(spawner, &wanted, zygote, err) < 0 || !zygote)
            return -1;
    }
    struct zygote_fork order = {
        .slot = slot_number(spawner, slot),
        .generation = slot->generation,
        .groups = slot->procs_count,
        .open_files = build->open_files,
        /* gloveboxd has parked sandboxes run AGENT_MODE_PRIME when nothing else is to do. */
        .prime = ZYGOTE_PRIME_NOTHING,
        .has_loopback = build->network == SPAWN_NETWORK_LOOPBACK,
        .disabled_walls = spawner->disabled_walls,
        .disk_bytes = build->disk_bytes,
        .processes = processes_backstop(spawner, build),
    };
    int fds[ZYGOTE_FDS + GROUPS] = {
        [ZYGOTE_FD_INIT] = slot->init,       [ZYGOTE_FD_STDIN] = slot->ends[0],
        [ZYGOTE_FD_STDOUT] = slot->ends[1],  [ZYGOTE_FD_STDERR] = slot->ends[2],
        [ZYGOTE_FD_CONTROL] = slot->ends[3], [ZYGOTE_FD_FILTER] = spawner->filters[build->network],
    };
    for (unsigned i = 0; i < slot->procs_count; i++)
        fds[ZYGOTE_FDS + i] = slot->procs[i];
    if (packet_send(zygote->socket, ZYGOTE_FORK, &order, sizeof order, fds,
                    ZYGOTE_FDS + slot->procs_count, err) < 0)
        return under(err, "order an interpreter");
    slot_close_ends(slot); /* the message holds them now */
    slot->zygote = zygote;
    if (!zygote->ready) /* a machine without a processor to spare takes long to warm one */
        slot->until_ms = now_ms() + SPAWN_WARM_MS;
    zygote->forks++;
    zygote->unanswered++;
    return 0;
}

static void interpreter_is_forked(struct spawner *spawner, struct zygote *zygote,
                                  const struct packet *packet)
{
    struct zygote_forked forked;
    memcpy(&forked, packet->body, sizeof forked);
    if (zygote->unanswered > 0)
        zygote->unanswered--;
    struct slot *slot = slot_at(spawner, forked.slot, forked.generation);
    if (!slot || slot->state != SLOT_BUILDING || slot->zygote != zygote)
        return;
    forked.err.text[sizeof forked.err.text - 1] = '\0';
    if (forked.err.code != ERR_NONE)
        build_failed(spawner, slot, &forked.err);
    else
        sandbox_stands(spawner, slot);
}

/* Fails the builds that wait for this zygote, with the cause. */
static void zygote_is_lost(struct spawner *spawner, struct zygote *zygote, const error *cause)
{
    for (uint32_t i = 0; i < spawner->slot_count; i++) {
        struct slot *slot = &spawner->slots[i];
        if (slot->state == SLOT_BUILDING && slot->zygote == zygote)
            build_failed(spawner, slot, cause);
    }
    zygote_end(zygote);
}

void zygote_speaks(struct spawner *spawner, uint32_t index)
{
    struct zygote *zygote = &spawner->zygotes[index % ZYGOTES_MAX];
    struct packet packet;
    error err;
    if (zygote->socket < 0)
        return;
    int came = packet_receive(zygote->socket, &packet, &err);
    if (came == PACKET_NONE)
        return;
    if (came != PACKET_CAME && came != PACKET_CUT) {
        (void) fail(&err, ERR_UNAVAILABLE, "the zygote of set %u ended", zygote->set);
        zygote_is_lost(spawner, zygote, &err);
        return;
    }
    if (packet.kind == ZYGOTE_FORKED && packet.size == sizeof(struct zygote_forked))
        interpreter_is_forked(spawner, zygote, &packet);
    else if (packet.kind == ZYGOTE_READY && packet.size == sizeof(struct zygote_ready)) {
        struct zygote_ready ready;
        memcpy(&ready, packet.body, sizeof ready);
        ready.err.text[sizeof ready.err.text - 1] = '\0';
        zygote->ready = ready.err.code == ERR_NONE;
        if (!zygote->ready)
            zygote_is_lost(spawner, zygote, &ready.err);
    }
    packet_done(&packet);
}

void zygotes_of_template_are_lost(struct spawner *spawner, uint32_t template)
{
    error cause;
    (void) fail(&cause, ERR_UNAVAILABLE, "the fork server of template %u ended", template);
    for_each(zygote, spawner->zygotes)
        if (zygote->socket >= 0 && zygote->template == template)
            zygote_is_lost(spawner, zygote, &cause);
}

/* Starts a replacement for a zygote that has served long enough, and lets the old one go when the
 * new one is warm. One that never becomes warm is given up: builds that wait for it have a time. */
void zygotes_tend(struct spawner *spawner)
{
    int64_t now = now_ms();
    for_each(zygote, spawner->zygotes) {
        if (zygote->socket < 0)
            continue;
        bool is_stuck = !zygote->ready && now - zygote->started_ms >= AGE_MAX_MS;
        if (is_stuck || (zygote->is_old && zygote->unanswered == 0)) {
            zygote_end(zygote);
            continue;
        }
        if (zygote->is_old || !zygote->ready ||
            (zygote->forks < FORKS_MAX && now - zygote->started_ms < AGE_MAX_MS))
            continue;
        const struct zygote *fresh = zygote_find(spawner, zygote);
        error err;
        if (!fresh && zygote->forks > 0)
            (void) zygote_start(spawner, zygote, find_place(spawner), &err);
        else if (!fresh || fresh->ready) /* never used, or its replacement is ready */
            zygote->is_old = true;
    }
}
