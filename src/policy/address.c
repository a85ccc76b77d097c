/* address.c - see address.h. Only rules that allow a network by number override the table. */
#include "policy/address.h"

#include "base/table.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *network;
    unsigned prefix;
} special_four[] = {
    { "0.0.0.0", 8 },       /* this network; 0.0.0.0 is the own host on Linux */
    { "10.0.0.0", 8 },      /* private, RFC 1918 */
    { "100.64.0.0", 10 },   /* carriers' shared space, RFC 6598 */
    { "127.0.0.0", 8 },     /* loopback */
    { "169.254.0.0", 16 },  /* link-local, metadata services */
    { "172.16.0.0", 12 },   /* private */
    { "192.0.0.0", 24 },    /* protocol assignments, RFC 6890 */
    { "192.0.2.0", 24 },    /* documentation */
    { "192.31.196.0", 24 }, /* AS112, RFC 7535 */
    { "192.52.193.0", 24 }, /* AMT, RFC 7450 */
    { "192.88.99.0", 24 },  /* 6to4 relays */
    { "192.168.0.0", 16 },  /* private */
    { "192.175.48.0", 24 }, /* AS112, RFC 7534 */
    { "198.18.0.0", 15 },   /* benchmarks, RFC 2544; names resolve to these in sandboxes */
    { "198.51.100.0", 24 }, /* documentation */
    { "203.0.113.0", 24 },  /* documentation */
    { "224.0.0.0", 4 },     /* multicast */
    { "240.0.0.0", 4 },     /* reserved, broadcast */
};

static const struct {
    const char *network;
    unsigned prefix;
} special_six[] = {
    { "::", 96 },             /* unspecified, loopback, IPv4-compatible */
    { "::ffff:0:0:0", 96 },   /* IPv4-translated, RFC 2765 */
    { "64:ff9b::", 96 },      /* NAT64, RFC 6052 */
    { "64:ff9b:1::", 48 },    /* NAT64, RFC 8215 */
    { "100::", 64 },          /* discard, RFC 6666 */
    { "2001::", 23 },         /* protocol assignments: Teredo, ORCHID, benchmarks */
    { "2001:db8::", 32 },     /* documentation */
    { "2002::", 16 },         /* 6to4 carries an IPv4 address */
    { "2620:4f:8000::", 48 }, /* AS112 */
    { "3fff::", 20 },         /* documentation, RFC 9637 */
    { "5f00::", 16 },         /* segment routing, RFC 9602 */
    { "fc00::", 7 },          /* private */
    { "fe80::", 10 },         /* link-local */
    { "fec0::", 10 },         /* site-local, RFC 3879 */
    { "ff00::", 8 },          /* multicast */
};

void address_map(const struct in_addr *from, struct in6_addr *ret_mapped)
{
    memset(ret_mapped, 0, sizeof *ret_mapped);
    ret_mapped->s6_addr[10] = ret_mapped->s6_addr[11] = 0xff;
    memcpy(&ret_mapped->s6_addr[12], from, 4);
}

static bool bits_agree(const unsigned char *one, const unsigned char *other, unsigned bits)
{
    if (memcmp(one, other, bits / 8) != 0)
        return false;
    unsigned rest = bits % 8;
    return rest == 0 || ((one[bits / 8] ^ other[bits / 8]) & (0xff00U >> rest) & 0xff) == 0;
}

bool address_is_within(const struct in6_addr *address, const unsigned char network[16],
                       unsigned prefix)
{
    return bits_agree(address->s6_addr, network, prefix > 128 ? 128 : prefix);
}

bool address_is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_V4MAPPED(address) ? address->s6_addr[12] == 127
                                         : IN6_IS_ADDR_LOOPBACK(address);
}

bool address_is_special(const struct in6_addr *address)
{
    unsigned char network[16];
    if (IN6_IS_ADDR_V4MAPPED(address)) {
        for_each(row, special_four)
            if (inet_pton(AF_INET, row->network, network) == 1 &&
                bits_agree(&address->s6_addr[12], network, row->prefix))
                return true;
        return false;
    }
    for_each(row, special_six)
        if (inet_pton(AF_INET6, row->network, network) == 1 &&
            bits_agree(address->s6_addr, network, row->prefix))
            return true;
    return (address->s6_addr[0] & 0xe0) != 0x20; /* only 2000::/3 is in use on the internet */
}

int network_read(const char *text, unsigned char ret_network[16], unsigned *ret_prefix)
{
    char host[ADDRESS_TEXT];
    struct in_addr four;
    struct in6_addr address;
    size_t length = strcspn(text, "/");
    if (length == 0 || length >= sizeof host)
        return -1;
    memcpy(host, text, length);
    host[length] = '\0';
    bool is_four = inet_pton(AF_INET, host, &four) == 1;
    if (is_four)
        address_map(&four, &address);
    else if (inet_pton(AF_INET6, host, &address) != 1)
        return -1;
    unsigned max = is_four ? 32 : 128, prefix = max;
    if (text[length] == '/') {
        char *end;
        if (text[length + 1] < '0' || text[length + 1] > '9')
            return -1;
        unsigned long read = strtoul(text + length + 1, &end, 10);
        if (*end || read > max)
            return -1;
        prefix = (unsigned) read;
    }
    prefix += is_four ? 96 : 0;
    for (unsigned bit = prefix; bit < 128; bit++)
        if (address.s6_addr[bit / 8] & (0x80U >> (bit % 8)))
            return -1;
    memcpy(ret_network, address.s6_addr, 16);
    *ret_prefix = prefix;
    return 0;
}

void address_write(const struct in6_addr *address, char ret_text[ADDRESS_TEXT])
{
    bool is_four = IN6_IS_ADDR_V4MAPPED(address);
    (void) inet_ntop(is_four ? AF_INET : AF_INET6,
                     is_four ? &address->s6_addr[12] : (const void *) address, ret_text,
                     ADDRESS_TEXT);
}
