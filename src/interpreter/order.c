/* order.c - the only message that a zygote accepts: checks its size, its descriptors and its
 * numbers before they are used. */
#include "interpreter/zygote.h"

#include "base/packet.h"
#include "contract/spawn.h"

#include <string.h>

int zygote_read_order(const struct packet *packet, struct zygote_fork *ret_order, error *err)
{
    struct zygote_fork order;
    if (packet->kind != ZYGOTE_FORK || packet->size != sizeof order)
        return fail(err, ERR_PROTOCOL, "a zygote only accepts ZYGOTE_FORK, not message %u",
                    packet->kind);
    memcpy(&order, packet->body, sizeof order);
    *ret_order = order; /* a refusal, too, is answered with its slot */
    if (order.groups > GROUPS || packet->fds != ZYGOTE_FDS + order.groups)
        return fail(err, ERR_PROTOCOL, "a fork with %u groups came with %u descriptors",
                    order.groups, packet->fds);
    if (order.prime > ZYGOTE_PRIME_WORK || order.has_loopback > 1 || order.open_files == 0 ||
        order.processes == 0)
        return fail(err, ERR_PROTOCOL, "a fork with %u open files and prime %u is out of bounds",
                    order.open_files, order.prime);
    return 0;
}
