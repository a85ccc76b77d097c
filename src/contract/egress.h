/* egress.h - what gloveboxd asks of glovebox-egress, and what it answers.
 *
 * One SEQPACKET socket, one peer; a message is a packet (base/packet.h) with a struct of exactly
 * its size. A channel is the egress of one sandbox: the sockets that listen inside its network
 * namespace, and the rules for what may pass. Rules come first, one a packet; then the channel is
 * opened, and its rules do not change any more. Names are in canonical form (base/host_name.h):
 * lower case, no dot at the end. Ports are in host order, addresses as in6_addr (IPv4 mapped). */
#pragma once

#include "base/host_name.h"
#include "contract/spawn.h"

#include <stdint.h>

enum {
    EGRESS_VERSION = 5,
    EGRESS_PATH_SIZE = 192,
    EGRESS_METHOD_SIZE = 16,
    EGRESS_PORTS_MAX = SPAWN_PORTS_MAX, /* in one rule, and of one channel */
    EGRESS_RULES_MAX = 64,              /* of one channel */
    EGRESS_ENDPOINTS_MAX = 8,           /* of one channel */
    EGRESS_ENDPOINT_NAME_SIZE = 32,
    EGRESS_HEADERS_MAX = 4, /* that one endpoint adds */
    EGRESS_HEADER_SIZE = 48,
    EGRESS_PROXY_PORT = 3128,
    EGRESS_DNS_PORT = 53,
    EGRESS_LISTENERS_MAX = 3 + EGRESS_PORTS_MAX, /* DNS by UDP and TCP, the proxy, the ports */
    EGRESS_PIECE = 960,
    EGRESS_AUTHORITY_MAX = 16384, /* bytes of a certificate (PEM), its end included */
};

enum egress_kind {
    /* egress -> daemon */
    EGRESS_HELLO = 1, /* struct egress_hello, once */
    EGRESS_RECORD,    /* struct egress_record: a connection has ended, or something was refused */
    EGRESS_CLOSED,    /* struct egress_closed: no record of this channel follows */
    EGRESS_TOLD,      /* struct egress_closed: answers TELL, after the records of all that ended */
    EGRESS_AUTHORITY, /* struct egress_authority, in pieces: of a channel with intercepted rules */
    EGRESS_BEGUN,     /* struct egress_record: a connection may pass; sent before its first byte */

    /* daemon -> egress */
    EGRESS_RULE = 32, /* struct egress_rule: belongs to the channel that is opened next */
    EGRESS_OPEN,      /* struct egress_open; fds: the listening sockets, in the order of `ports` */
    EGRESS_CLOSE,     /* struct egress_channel: ends its connections -> EGRESS_CLOSED */
    EGRESS_TELL,      /* struct egress_channel: -> EGRESS_TOLD, once; the channel goes on */
    EGRESS_ENDPOINT,  /* struct egress_endpoint: comes before the rules that lead to it */
};

struct egress_hello {
    uint32_t version;
    uint32_t reserved;
};

enum egress_rule_flag {
    EGRESS_ANY_BELOW = 1,    /* host is what comes after "*." */
    EGRESS_NETWORK = 2,      /* no host: literal addresses within `network` */
    EGRESS_PRIVATE = 4,      /* the host's addresses may lie within `network`, special or not */
    EGRESS_AT_ENDPOINT = 8,  /* host is "NAME.endpoint": requests go to endpoints[endpoint] */
    EGRESS_INTERCEPTED = 16, /* its ports carry TLS that is intercepted: its requests are seen */
};

struct egress_rule {
    uint32_t channel;
    uint16_t label; /* the policy's own number of this rule; comes back in records */
    uint16_t flags;
    uint32_t methods; /* bits of enum http_method; none: every method */
    uint16_t port_count;
    uint16_t prefix; /* of `network`, 0 to 128 */
    uint16_t ports[EGRESS_PORTS_MAX];
    uint8_t network[16];
    char host[HOST_NAME_SIZE];
    char path[EGRESS_PATH_SIZE]; /* prefix of the path, "" for any */
    uint16_t endpoint;           /* with EGRESS_AT_ENDPOINT: which of those that came before */
};

/* Where "http://NAME.endpoint/" leads: one upstream, which gets headers that code never sees. */
struct egress_endpoint {
    uint32_t channel;
    uint32_t rate;    /* requests a minute, of all channels together; 0: as many as come */
    uint32_t idle_ms; /* longest time without a byte in either direction; never 0 */
    uint16_t port;
    uint16_t is_tls;
    uint16_t header_count; /* that must be added; their values are glovebox-egress's own */
    uint16_t reserved;
    char name[EGRESS_ENDPOINT_NAME_SIZE];
    char host[HOST_NAME_SIZE];
    char path[EGRESS_PATH_SIZE]; /* comes before that of a request */
    char headers[EGRESS_HEADERS_MAX][EGRESS_HEADER_SIZE];
};

enum egress_listener {
    EGRESS_LISTEN_DNS_UDP,
    EGRESS_LISTEN_DNS_TCP,
    EGRESS_LISTEN_PROXY,
    EGRESS_LISTEN_PORT
};

struct egress_open {
    uint32_t channel;
    uint32_t rules; /* how many came before it */
    uint32_t connections_max;
    uint32_t duration_ms; /* of one connection, 0 = as long as the channel */
    uint64_t sent_max;    /* bytes from the sandbox, all connections together */
    uint64_t received_max;
    uint16_t port_count; /* after DNS by UDP, DNS by TCP and the proxy */
    uint16_t ports[EGRESS_PORTS_MAX];
    uint16_t padding;
    uint32_t endpoints; /* how many came before it */
    uint32_t life_s;    /* the longest it may last; certificates are valid as long */
};

struct egress_channel {
    uint32_t channel;
    uint32_t reserved;
};

/* Why something was refused; the sentences are in contract/egress_reasons.def. */
enum egress_reason {
    EGRESS_ALLOWED,
#define REASON(name, ...) EGRESS_##name,
#include "contract/egress_reasons.def"
    EGRESS_REASONS
};

enum egress_entry {
    EGRESS_BY_NAME,
    EGRESS_BY_CONNECT,
    EGRESS_BY_PROXY,
    EGRESS_BY_DNS,
    EGRESS_ENTRIES
};

enum { EGRESS_NO_LABEL = 0xffff };

struct egress_record {
    uint32_t channel;
    uint16_t reason; /* enum egress_reason */
    uint16_t label;  /* of the rule that allowed it, EGRESS_NO_LABEL if none */
    uint16_t route;  /* enum egress_entry */
    uint16_t port;
    uint16_t status; /* of HTTP, 0 if it was not seen */
    uint8_t is_tls;
    uint8_t is_intercepted;  /* TLS was terminated: what is reported of the request was inside */
    uint64_t sent, received; /* bytes of the connection, as the sandbox sees it */
    uint64_t began_ms;       /* since 1970 */
    uint32_t took_ms;
    uint32_t is_begun;   /* BEGUN was sent for it */
    uint32_t scrubbed;   /* secrets that an upstream sent back and that were taken out */
    uint8_t address[16]; /* that was connected to; zeros if none */
    char name[HOST_NAME_SIZE];
    char method[EGRESS_METHOD_SIZE];
    char path[EGRESS_PATH_SIZE];
};

/* A piece of the certificate (PEM) that the sandbox has to trust, so that its code can use TLS with
 * the hosts of intercepted rules. The private key stays in glovebox-egress. */
struct egress_authority {
    uint32_t channel;
    uint16_t from, size;
    uint16_t whole; /* bytes of all pieces, less than EGRESS_AUTHORITY_MAX */
    char text[EGRESS_PIECE];
};

struct egress_closed {
    uint32_t channel;
    uint32_t lost; /* records that could not be sent: too many at once */
};
