/* orders_fuzz.c - any message of the spawner to a holder or to a zygote: what is accepted lies
 * within its bounds and came with exactly its descriptors, and every descriptor is closed in the
 * end. */
#include "dice.h"

#include "contract/build.h"
#include "contract/zygote.h"
#include "init/init.h"
#include "interpreter/zygote.h"
#include "model/ids.h"

enum { ZYGOTES = 3 };

static void read_as_holder(const struct packet *packet)
{
    error err = { 0 };
    struct build_sandbox sandbox = { 0 };
    struct build_zygote zygote;
    if (read_build_sandbox(packet, &sandbox, &err) == 0) {
        assert(packet->kind == BUILD_SANDBOX);
        assert(sandbox.groups <= GROUPS && packet->fds == 2 + 2 * sandbox.groups);
        assert(sandbox.network < SPAWN_NETWORK_KINDS && sandbox.start < SPAWN_STARTS);
        assert(sandbox.agent_outer_id < HOST_ID_COUNT && sandbox.generation > 0);
    } else {
        assert(err.code == ERR_PROTOCOL && err.text[0] != '\0');
    }
    if (read_build_zygote(packet, ZYGOTES, &zygote, &err) == 0)
        assert(packet->kind == BUILD_ZYGOTE && zygote.index < ZYGOTES && packet->fds == 1);
}

static void read_as_zygote(const struct packet *packet)
{
    error err = { 0 };
    struct zygote_fork order = { 0 };
    if (zygote_read_order(packet, &order, &err) == 0) {
        assert(packet->kind == ZYGOTE_FORK && packet->fds == ZYGOTE_FDS + order.groups);
        assert(order.groups <= GROUPS && order.prime <= ZYGOTE_PRIME_WORK &&
               order.has_loopback <= 1);
        assert(order.open_files > 0 && order.processes > 0);
    } else {
        assert(err.code == ERR_PROTOCOL && err.text[0] != '\0');
    }
}

/* A message that is right but for a few bytes, or nothing but the fuzzer's bytes. */
static void send_one(struct dice *dice, int socket)
{
    static const int fds[PACKET_MAX_FDS + 4]; /* standard input, many times */
    static const struct build_sandbox sandbox = { .generation = 1, .groups = 2 };
    static const struct zygote_fork fork = { .groups = 1, .open_files = 64, .processes = 4 };
    static const struct build_zygote zygote = { .index = 1 };
    static const struct {
        uint32_t kind;
        unsigned fds;
        const void *body;
        size_t size;
    } right[] = { { BUILD_SANDBOX, 6, &sandbox, sizeof sandbox },
                  { BUILD_ZYGOTE, 1, &zygote, sizeof zygote },
                  { ZYGOTE_FORK, ZYGOTE_FDS + 1, &fork, sizeof fork } };
    unsigned char body[2048] = { 0 };
    uint8_t which = dice_byte(dice);
    unsigned extra = dice_byte(dice);
    if (which % 4 == 3) {
        size_t size = dice->left < sizeof body ? dice->left : sizeof body;
        memcpy(body, dice->at, size);
        send_anything(socket, which >> 2, body, size, fds, extra % 29);
        dice->left = 0;
        return;
    }
    memcpy(body, right[which % 4].body, right[which % 4].size);
    dice_change(dice, body, right[which % 4].size);
    unsigned count = extra < 200 ? right[which % 4].fds : extra % 29;
    size_t size = which < 200 ? right[which % 4].size : dice_byte(dice) * 5U;
    send_anything(socket, right[which % 4].kind, body, size, fds, count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dice dice = { data, size };
    struct packet packet;
    error err;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
        abort();
    unsigned before = descriptors_open();
    while (dice.left > 0) {
        send_one(&dice, pair[0]);
        if (packet_receive(pair[1], &packet, &err) != PACKET_CAME)
            continue;
        assert(packet.size <= PACKET_MAX_BYTES && packet.fds <= PACKET_MAX_FDS);
        read_as_holder(&packet);
        read_as_zygote(&packet);
        packet_done(&packet);
    }
    assert(descriptors_open() == before);
    (void) close(pair[0]);
    (void) close(pair[1]);
    return 0;
}
