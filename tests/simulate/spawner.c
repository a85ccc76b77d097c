/* spawner.c - plays glovebox-spawner: builds, loses and frees sandboxes as late as the seed says,
 * and ends when it says so. */
#include "sandbox_internal.h"

#include "base/packet.h"

#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct spawner {
    int socket, peer;
    uv_poll_t poll;
    uint32_t slots, generation;
    bool has_gone;
    struct slot list[SIM_SLOTS_MAX];
} spawner;

unsigned spawner_used(void)
{
    unsigned used = 0;
    for (unsigned i = 0; i < spawner.slots; i++)
        used += spawner.list[i].is_used;
    return used;
}

bool spawner_has_gone(void)
{
    return spawner.has_gone;
}

struct slot *slot_at(unsigned index)
{
    return &spawner.list[index];
}

unsigned slot_index(const struct slot *slot)
{
    return (unsigned) (slot - spawner.list);
}

int64_t some_time_us(void)
{
    return one_in(40) ? (int64_t) chance(3000) * 1000 : (int64_t) chance(12) * 1000;
}

void end_stream(struct slot *slot)
{
    if (slot->stream < 0)
        return;
    uv_close((uv_handle_t *) slot->poll, (uv_close_cb) free);
    (void) close(slot->stream);
    slot->stream = -1;
}

static void tell_spawner(uint32_t kind, const void *body, size_t size, const int *fds,
                         unsigned fd_count)
{
    error err;
    sim_op();
    sim_is_outside = true;
    if (!spawner.has_gone)
        (void) packet_send(spawner.socket, kind, body, size, fds, fd_count, &err);
    sim_is_outside = false;
}

static struct spawn_slot name_of(const struct slot *slot)
{
    return (struct spawn_slot){ (uint32_t) (slot - spawner.list) + 1, slot->generation };
}

/* Its init has gone, and all that it held. */
void break_down(struct slot *slot)
{
    struct spawn_slot name = name_of(slot);
    trace("the init of slot %u ends", slot_index(slot));
    end_stream(slot);
    tell_spawner(SPAWN_LOST, &name, sizeof name, NULL, 0);
}

/* --- slots ------------------------------------------------------------------------------------ */

struct order {
    struct spawn_build build;
    struct spawn_slot name;
};

static void refuse(const struct spawn_build *build)
{
    struct spawn_built built = { .request = build->request };
    (void) fail(&built.err, ERR_SYSTEM, "no namespace");
    tell_spawner(SPAWN_BUILT, &built, sizeof built, NULL, 0);
}

static void stands(struct slot *slot, const struct later *later)
{
    struct agent_started started = { .pid = 1 };
    (void) later;
    say(slot, AGENT_STARTED, AGENT_INTERPRETER, &started, sizeof started);
}

static void open_slot(struct slot *slot, const struct spawn_build *build)
{
    static unsigned char streams[SIM_SLOTS_MAX][STREAM_ROOM];
    int pair[2];
    uv_poll_t *poll = __real_calloc(1, sizeof *poll);
    if (!poll || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    *slot = (struct slot){ .is_used = true,
                           .is_forked = build->start == SPAWN_FORKED,
                           .generation = ++spawner.generation,
                           .tenant = build->tenant,
                           .stream = pair[0],
                           .from_daemon = streams[slot_index(slot)],
                           .poll = poll };
    struct spawn_slot name = name_of(slot);
    struct spawn_built built = { .request = build->request,
                                 .slot = name.slot,
                                 .generation = name.generation,
                                 .walls = (UINT64_C(1) << WALLS) - 1 };
    int pidfd = dup(STDERR_FILENO);
    const int fds[] = { pair[1], pidfd };
    tell_spawner(SPAWN_BUILT, &built, sizeof built, fds, 2);
    (void) close(pair[1]);
    (void) close(pidfd);
    poll->data = slot;
    (void) uv_poll_init(sim_loop, poll, slot->stream);
    uv_unref((uv_handle_t *) poll);
    (void) uv_poll_start(poll, UV_READABLE, on_stream);
    struct agent_hello hello = { .version = AGENT_VERSION };
    say(slot, AGENT_HELLO, 0, &hello, sizeof hello);
    if (slot->is_forked)
        in_a_while(slot, some_time_us(), 0, stands);
    else if (!world->is_calm && one_in(60))
        break_down(slot);
}

static void build(void *context)
{
    struct order *order = context;
    struct slot *slot = NULL;
    for (unsigned i = 0; i < spawner.slots && !slot; i++)
        if (!spawner.list[i].is_used)
            slot = &spawner.list[i];
    if (!slot && !spawner.has_gone)
        finding("a sandbox was asked for, and no slot is free");
    if (spawner.has_gone || !slot) {
    } else if (!world->is_calm && one_in(25))
        refuse(&order->build);
    else
        open_slot(slot, &order->build);
    free(order);
}

static void tell_back(void *context)
{
    struct order *order = context;
    struct slot *slot = &spawner.list[order->name.slot - 1];
    struct spawn_released released = { order->name.slot, order->name.generation, SPAWN_IS_BACK, 0 };
    slot->is_used = slot->is_stuck = false;
    tell_spawner(SPAWN_RELEASED, &released, sizeof released, NULL, 0);
    free(order);
}

static void release(void *context)
{
    struct order *order = context;
    struct slot *slot = &spawner.list[order->name.slot - 1];
    struct spawn_released released = { order->name.slot, order->name.generation, 0, 0 };
    end_stream(slot);
    slot->is_stuck = !world->is_calm && one_in(40);
    slot->is_used = slot->is_stuck;
    released.leftovers = slot->is_stuck;
    trace("slot %u is %s", order->name.slot - 1, slot->is_stuck ? "stuck" : "free");
    tell_spawner(SPAWN_RELEASED, &released, sizeof released, NULL, 0);
    if (slot->is_stuck)
        sim_after((int64_t) chance(5000) * 1000, tell_back, order);
    else
        free(order);
}

static void inject(const unsigned char *body)
{
    struct spawn_inject order;
    struct agent_started started = { .pid = 3 };
    memcpy(&order, body, sizeof order);
    struct slot *slot = &spawner.list[(order.slot - 1) % SIM_SLOTS_MAX];
    if (slot->is_used && slot->generation == order.generation && slot->stream >= 0 &&
        !slot->is_deaf)
        say(slot, AGENT_STARTED, order.id, &started, sizeof started);
}

/* Each slot is given back once, by the name that it was given under. */
static void check_release(const struct spawn_slot *name)
{
    struct slot *slot =
        name->slot >= 1 && name->slot <= spawner.slots ? &spawner.list[name->slot - 1] : NULL;
    if (!slot || !slot->is_used || slot->generation != name->generation || slot->is_leaving)
        finding("slot %d of generation %u is given back, which is not in use", (int) name->slot - 1,
                name->generation);
    else
        slot->is_leaving = true;
}

static void serve(const struct packet *packet)
{
    struct order *order = __real_calloc(1, sizeof *order);
    if (!order)
        abort();
    if (packet->kind == SPAWN_BUILD) {
        memcpy(&order->build, packet->body, sizeof order->build);
        sim_after(some_time_us(), build, order);
    } else if (packet->kind == SPAWN_RELEASE) {
        memcpy(&order->name, packet->body, sizeof order->name);
        check_release(&order->name);
        sim_after(some_time_us(), release, order);
    } else {
        if (packet->kind == SPAWN_INJECT)
            inject(packet->body);
        free(order);
    }
}

static void on_packet(uv_poll_t *poll, int status, int events)
{
    error err;
    struct packet packet;
    (void) events;
    while (status >= 0 && !spawner.has_gone) {
        sim_is_outside = true;
        int came = packet_receive(spawner.socket, &packet, &err);
        sim_is_outside = false;
        if (came != PACKET_CAME) {
            if (came != PACKET_NONE)
                (void) uv_poll_stop(poll);
            return;
        }
        trace("the spawner hears %u", packet.kind);
        serve(&packet);
        packet_done(&packet);
    }
}

static void go(void *context)
{
    (void) context;
    trace("the spawner ends");
    spawner.has_gone = true;
    (void) uv_poll_stop(&spawner.poll);
    (void) close(spawner.socket);
    for (unsigned i = 0; i < spawner.slots; i++)
        end_stream(&spawner.list[i]);
}

int spawner_begin(void)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        abort();
    spawner =
        (struct spawner){ .socket = pair[0], .slots = 3 + (uint32_t) chance(SIM_SLOTS_MAX - 2) };
    for (unsigned i = 0; i < SIM_SLOTS_MAX; i++)
        spawner.list[i].stream = -1;
    return pair[1];
}

void spawner_start(void)
{
    struct spawn_hello hello = {
        .version = SPAWN_VERSION, .slots = spawner.slots, .first_slot = 1, .walls = 0
    };
    (void) uv_poll_init(sim_loop, &spawner.poll, spawner.socket);
    uv_unref((uv_handle_t *) &spawner.poll);
    (void) uv_poll_start(&spawner.poll, UV_READABLE, on_packet);
    tell_spawner(SPAWN_HELLO, &hello, sizeof hello, NULL, 0);
    if (!world->is_calm && one_in(8))
        sim_after((int64_t) chance(3000) * 1000, go, NULL);
}
