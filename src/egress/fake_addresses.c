/* fake_addresses.c - see fake_addresses.h. */
#include "egress/fake_addresses.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const uint32_t first_address = 198U << 24 | 18U << 16 | 1;

int fake_addresses_address(struct fake_addresses *names, const char *name,
                           struct in_addr *ret_address)
{
    unsigned index = 0;
    while (index < names->count && strcmp(names->list[index], name) != 0)
        index++;
    if (index == FAKE_ADDRESSES_MAX)
        return -1;
    if (index == names->room) {
        unsigned room = names->room > 0 ? names->room * 2 : 8;
        void *larger = realloc(names->list, room * sizeof *names->list);
        if (!larger)
            return -1;
        names->list = larger;
        names->room = room;
    }
    if (index == names->count) {
        size_t length = strnlen(name, HOST_NAME_SIZE - 1);
        memcpy(names->list[index], name, length);
        names->list[index][length] = '\0';
        names->count++;
    }
    ret_address->s_addr = htonl(first_address + index);
    return 0;
}

const char *fake_addresses_find(const struct fake_addresses *names, const struct in6_addr *address)
{
    uint32_t number;
    if (!IN6_IS_ADDR_V4MAPPED(address))
        return NULL;
    memcpy(&number, &address->s6_addr[12], sizeof number);
    uint32_t index = ntohl(number) - first_address;
    return index < names->count ? names->list[index] : NULL;
}

void fake_addresses_free(struct fake_addresses *names)
{
    free(names->list);
    *names = (struct fake_addresses){ 0 };
}
