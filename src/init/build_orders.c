/* build_orders.c - reads the spawner's packets to a fork server. The spawner has checked every
 * number; a fork server checks them again, and refuses an order with one out of bounds. */
#include "init/init.h"

#include "base/packet.h"
#include "model/ids.h"

#include <string.h>

int read_build_sandbox(const struct packet *packet, struct build_sandbox *ret_order, error *err)
{
    struct build_sandbox order;
    if (packet->kind != BUILD_SANDBOX || packet->size != sizeof order)
        return fail(err, ERR_PROTOCOL, "the spawner sent message %u of %zu bytes", packet->kind,
                    packet->size);
    memcpy(&order, packet->body, sizeof order);
    *ret_order = order; /* a refusal, too, is answered with its slot */
    if (order.groups > GROUPS || packet->fds != 2 + 2 * order.groups)
        return fail(err, ERR_PROTOCOL, "the spawner sent %u descriptors for %u groups", packet->fds,
                    order.groups);
    if (order.network >= SPAWN_NETWORK_KINDS || order.start >= SPAWN_STARTS ||
        order.agent_outer_id >= HOST_ID_COUNT || order.generation == 0 ||
        order.route.port_count > SPAWN_PORTS_MAX ||
        (order.route.is_open && order.network != SPAWN_NETWORK_LOOPBACK))
        return fail(err, ERR_PROTOCOL, "the spawner sent an order that is out of bounds");
    return 0;
}

int read_build_zygote(const struct packet *packet, unsigned zygotes, struct build_zygote *ret_order,
                      error *err)
{
    struct build_zygote order;
    if (packet->kind != BUILD_ZYGOTE || packet->size != sizeof order || packet->fds != 1)
        return fail(err, ERR_PROTOCOL, "the spawner sent message %u of %zu bytes", packet->kind,
                    packet->size);
    memcpy(&order, packet->body, sizeof order);
    if (order.index >= zygotes)
        return fail(err, ERR_PROTOCOL, "zygote %u does not exist", order.index);
    *ret_order = order;
    return 0;
}
