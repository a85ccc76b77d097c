/* zygotes_test.c - which slots the end of a zygote affects, and which zygote is ended to make room.
 * A zygote is a socket here; no fork server uses it. */
#include "base/clock.h"
#include "base/test.h"

#include "spawner/spawner.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SLOTS = ZYGOTES_MAX + 2 };

static struct spawner root;
static int fork_server_side;
static bool has_failed[SLOTS], stands[SLOTS];

int watch(const struct spawner *from, int fd, enum watched kind, uint32_t index, error *err)
{
    (void) from;
    (void) fd;
    (void) kind;
    (void) index;
    (void) err;
    return 0;
}

uint32_t slot_number(const struct spawner *spawner, const struct slot *slot)
{
    return (uint32_t) (slot - spawner->slots);
}

struct slot *slot_at(struct spawner *spawner, uint32_t number, uint32_t generation)
{
    (void) generation;
    return number < SLOTS ? &spawner->slots[number] : NULL;
}

void slot_close_ends(struct slot *slot)
{
    (void) slot;
}

uint64_t processes_backstop(const struct spawner *spawner, const struct spawn_build *build)
{
    (void) spawner;
    return build->processes;
}

void build_failed(struct spawner *spawner, struct slot *slot, const error *cause)
{
    (void) cause;
    has_failed[slot_number(spawner, slot)] = true;
    slot->state = SLOT_LEAVING;
}

void sandbox_stands(struct spawner *spawner, struct slot *slot)
{
    stands[slot_number(spawner, slot)] = true;
    slot->state = SLOT_STANDING;
}

static void begin(void)
{
    int pair[2];
    require(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0, "a socket");
    memset(&root, 0, sizeof root);
    memset(has_failed, 0, sizeof has_failed);
    memset(stands, 0, sizeof stands);
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        root.zygotes[i].socket = -1;
    root.templates[0].fork_server_socket = pair[0];
    fork_server_side = pair[1];
    root.slot_count = SLOTS;
}

static int fork_for(unsigned index, uint32_t tenant, error *err)
{
    struct slot *slot = &root.slots[index];
    slot->state = SLOT_BUILDING;
    slot->build.start = SPAWN_FORKED;
    slot->build.tenant = tenant;
    slot->init = 0; /* any descriptor */
    memset(slot->ends, 0, sizeof slot->ends);
    return fork_interpreter(&root, slot, err);
}

/* The test's end of the socket of the last zygote started. */
static int take_zygote(void)
{
    struct packet packet;
    error err;
    require(packet_receive(fork_server_side, &packet, &err) == PACKET_CAME, "%s", err.text);
    require(packet.kind == BUILD_ZYGOTE && packet.fds == 1, "kind %u", packet.kind);
    return packet_take_fd(&packet, 0);
}

TEST(only_sandboxes_that_wait_for_a_zygote_fail_with_it)
{
    error err = { 0 };
    begin();
    require(fork_for(0, 1, &err) == 0, "%s", err.text);
    int old = take_zygote();
    root.zygotes[0].is_old = true; /* a new one of the same set replaces it */
    require(fork_for(1, 1, &err) == 0, "%s", err.text);
    int fresh = take_zygote();
    (void) close(old);
    zygote_speaks(&root, 0);
    expect(has_failed[0] && !has_failed[1], "slot 0 %d, slot 1 %d", has_failed[0], has_failed[1]);

    struct zygote_forked forked = { .slot = 1 };
    require(packet_send(fresh, ZYGOTE_FORKED, &forked, sizeof forked, NULL, 0, &err) == 0, "%s",
            err.text);
    zygote_speaks(&root, 1);
    expect(stands[1], "the other zygote serves on");
    (void) close(fresh);
}

TEST(a_zygote_is_evicted_only_without_pending_sandboxes)
{
    error err = { 0 };
    int sides[ZYGOTES_MAX];
    begin();
    for (unsigned i = 0; i < ZYGOTES_MAX; i++) {
        require(fork_for(i, i, &err) == 0, "zygote %u: %s", i, err.text);
        sides[i] = take_zygote();
    }
    expect(fork_for(ZYGOTES_MAX, 1000, &err) < 0 && err.code == ERR_BUSY, "'%s'", err.text);
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        expect(root.zygotes[i].socket >= 0 && !has_failed[i], "zygote %u", i);

    struct zygote_forked forked = { .slot = 7 };
    require(packet_send(sides[7], ZYGOTE_FORKED, &forked, sizeof forked, NULL, 0, &err) == 0, "%s",
            err.text);
    zygote_speaks(&root, 7);
    require(fork_for(ZYGOTES_MAX, 1000, &err) == 0, "%s", err.text);
    expect(root.zygotes[7].tenant == 1000, "it has tenant %u", root.zygotes[7].tenant);
    for (unsigned i = 0; i < ZYGOTES_MAX; i++)
        (void) close(sides[i]);
}

TEST(a_caller_waits_while_a_zygote_warms_up)
{
    error err = { 0 };
    begin();
    int64_t soon = now_ms() + 10000; /* what a build gets without one */
    root.slots[0].until_ms = root.slots[1].until_ms = soon;
    require(fork_for(0, 1, &err) == 0, "%s", err.text);
    expect(root.slots[0].until_ms > soon + 30000, "%ld ms", (long) (root.slots[0].until_ms - soon));
    expect(root.slots[0].until_ms <= now_ms() + SPAWN_WARM_MS, "no longer than is said");
    root.zygotes[0].ready = true;
    require(fork_for(1, 1, &err) == 0, "%s", err.text);
    expect(root.slots[1].until_ms == soon, "a warm one answers at once, or never");
    (void) close(take_zygote());
}

/* Sends a message of the zygote, and lets the spawner read it. */
static void say(int side, unsigned index, uint16_t kind, const void *body, size_t size)
{
    error err;
    require(packet_send(side, kind, body, size, NULL, 0, &err) == 0, "%s", err.text);
    zygote_speaks(&root, index);
}

/* When a zygote has reached its number of forks or its age, a new one warms up beside it. The old
 * one ends only when the new one is ready, and not before its last answer. */
static void is_replaced(unsigned forks, int64_t age_ms)
{
    static const struct zygote_ready ready = { .version = ZYGOTE_VERSION };
    struct zygote_forked forked = { .slot = 0 };
    error err = { 0 };
    begin();
    require(fork_for(0, 1, &err) == 0, "%s", err.text);
    int old = take_zygote();
    say(old, 0, ZYGOTE_READY, &ready, sizeof ready);
    zygotes_tend(&root);
    expect(root.zygotes[1].socket < 0, "it was replaced while it was new");

    root.zygotes[0].forks = forks;
    root.zygotes[0].started_ms -= age_ms;
    zygotes_tend(&root);
    int fresh = take_zygote();
    zygotes_tend(&root);
    require(fork_for(1, 1, &err) == 0, "%s", err.text);
    expect(root.slots[1].zygote == &root.zygotes[0], "nobody waits for the one that warms up");

    say(fresh, 1, ZYGOTE_READY, &ready, sizeof ready);
    zygotes_tend(&root);
    expect(root.zygotes[0].is_old && root.zygotes[0].socket >= 0, "two answers are to come");
    require(fork_for(2, 1, &err) == 0, "%s", err.text);
    expect(root.slots[2].zygote == &root.zygotes[1], "the fresh one serves");

    say(old, 0, ZYGOTE_FORKED, &forked, sizeof forked);
    forked.slot = 1;
    say(old, 0, ZYGOTE_FORKED, &forked, sizeof forked);
    zygotes_tend(&root);
    expect(root.zygotes[0].socket < 0, "the old one is still there");
    expect(stands[0] && stands[1] && !has_failed[2], "somebody was let down");
    (void) close(old);
    (void) close(fresh);
}

TEST(a_zygote_that_has_served_long_is_replaced)
{
    is_replaced(2000, 0);
    is_replaced(1, INT64_C(10) * 60 * 1000);
}

/* As if its disk had gone away: it answers nobody, and does not end. */
TEST(a_zygote_that_never_warms_up_is_replaced)
{
    error err = { 0 };
    begin();
    require(fork_for(0, 1, &err) == 0, "%s", err.text);
    int stuck = take_zygote();
    root.zygotes[0].started_ms -= INT64_C(10) * 60 * 1000 - 1000;
    zygotes_tend(&root);
    expect(root.zygotes[0].socket >= 0, "a slow disk needs more time");
    root.zygotes[0].started_ms -= 1000;
    zygotes_tend(&root);
    require(root.zygotes[0].socket < 0, "each run of its tenant fails from now on");
    require(fork_for(1, 1, &err) == 0, "%s", err.text);
    int fresh = take_zygote();
    static const struct zygote_ready ready = { .version = ZYGOTE_VERSION };
    struct zygote_forked forked = { .slot = 1 };
    say(fresh, 0, ZYGOTE_READY, &ready, sizeof ready);
    say(fresh, 0, ZYGOTE_FORKED, &forked, sizeof forked);
    expect(stands[1], "the fresh one serves");
    (void) close(stuck);
    (void) close(fresh);
}

TESTS(CASE(only_sandboxes_that_wait_for_a_zygote_fail_with_it),
      CASE(a_zygote_is_evicted_only_without_pending_sandboxes),
      CASE(a_caller_waits_while_a_zygote_warms_up), CASE(a_zygote_that_has_served_long_is_replaced),
      CASE(a_zygote_that_never_warms_up_is_replaced))
