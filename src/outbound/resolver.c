/* resolver.c - looks up names by c-ares on the event loop. It asks the resolvers that the host is
 * configured with. It does not read /etc/hosts, whose names are the host's own: only an endpoint's
 * upstream is looked up there (base/hosts_file.h). */
#include "outbound/resolver.h"

#include "outbound/socket_watcher.h"
#include "policy/address.h"

#include <ares.h>
#include <ifaddrs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

struct resolver {
    uv_loop_t *loop;
    ares_channel channel;
    uv_timer_t timer;
    struct watched_sockets sockets;
};

struct lookup {
    resolver_done *done;
    void *context;
    bool is_done; /* answered before resolver_ask() has returned */
    bool is_asking;
};

static void plan_timer(struct resolver *resolver);

static void socket_is_ready(void *context, int socket, bool reads, bool writes)
{
    struct resolver *resolver = context;
    ares_process_fd(resolver->channel, reads ? socket : ARES_SOCKET_BAD,
                    writes ? socket : ARES_SOCKET_BAD);
    plan_timer(resolver);
}

static void time_is_up(uv_timer_t *timer)
{
    struct resolver *resolver = timer->data;
    ares_process_fd(resolver->channel, ARES_SOCKET_BAD, ARES_SOCKET_BAD);
    plan_timer(resolver);
}

static void plan_timer(struct resolver *resolver)
{
    struct timeval room;
    const struct timeval *next = ares_timeout(resolver->channel, NULL, &room);
    if (!next) {
        (void) uv_timer_stop(&resolver->timer); /* no lookup is pending */
        return;
    }
    uint64_t ms = (uint64_t) next->tv_sec * 1000 + (uint64_t) next->tv_usec / 1000 + 1;
    (void) uv_timer_start(&resolver->timer, time_is_up, ms, 0);
}

/* If a socket cannot be watched, its lookup ends by c-ares' time limit. */
static void socket_changes(void *data, ares_socket_t socket, int reads, int writes)
{
    struct resolver *resolver = data;
    (void) watched_change(&resolver->sockets, socket, reads, writes);
}

int resolver_open(uv_loop_t *loop, const char *server, struct resolver **ret_resolver, error *err)
{
    struct resolver *resolver = calloc(1, sizeof *resolver);
    if (!resolver)
        return fail(err, ERR_SYSTEM, "no memory for the resolver");
    static char lookups[] = "b";
    struct ares_options options = { .flags = ARES_FLAG_NOSEARCH, /* no search domains */
                                    .timeout = 2000,
                                    .tries = 2,
                                    .lookups = lookups,
                                    .sock_state_cb = socket_changes,
                                    .sock_state_cb_data = resolver };
    int mask = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_LOOKUPS |
               ARES_OPT_SOCK_STATE_CB;
    resolver->loop = loop;
    resolver->timer.data = resolver;
    resolver->sockets =
        (struct watched_sockets){ .loop = loop, .ready = socket_is_ready, .context = resolver };
    int done = ares_library_init(ARES_LIB_INIT_ALL);
    if (done == ARES_SUCCESS)
        done = ares_init_options(&resolver->channel, &options, mask);
    if (done == ARES_SUCCESS && server)
        done = ares_set_servers_ports_csv(resolver->channel, server);
    if (done != ARES_SUCCESS || uv_timer_init(loop, &resolver->timer) < 0) {
        free(resolver);
        return done == ARES_EBADSTR
                   ? fail(err, ERR_BAD_REQUEST,
                          "resolver takes ADDRESS:PORT such as 127.0.0.1:53, not '%.80s'", server)
                   : fail(err, ERR_UNAVAILABLE, "start the resolver: %s", ares_strerror(done));
    }
    *ret_resolver = resolver;
    return 0;
}

static void take_addresses(const struct ares_addrinfo *found, struct in6_addr *addresses,
                           unsigned *count)
{
    for (const struct ares_addrinfo_node *node = found->nodes; node && *count < ADDRESSES_MAX;
         node = node->ai_next) {
        if (node->ai_family == AF_INET) {
            struct sockaddr_in four;
            memcpy(&four, node->ai_addr, sizeof four);
            address_map(&four.sin_addr, &addresses[(*count)++]);
        } else if (node->ai_family == AF_INET6) {
            struct sockaddr_in6 six;
            memcpy(&six, node->ai_addr, sizeof six);
            addresses[(*count)++] = six.sin6_addr;
        }
    }
}

static void answer_came(void *context, int status, int timeouts, struct ares_addrinfo *found)
{
    struct lookup *lookup = context;
    struct in6_addr addresses[ADDRESSES_MAX];
    unsigned count = 0;
    (void) timeouts;
    if (status == ARES_SUCCESS && found)
        take_addresses(found, addresses, &count);
    if (found)
        ares_freeaddrinfo(found);
    lookup->is_done = true;
    if (lookup->done)
        lookup->done(lookup->context, addresses, count);
    if (!lookup->is_asking)
        free(lookup);
}

struct lookup *resolver_ask(struct resolver *resolver, const char *name, resolver_done *done,
                            void *context)
{
    struct lookup *lookup = calloc(1, sizeof *lookup);
    if (!lookup) {
        done(context, NULL, 0);
        return NULL;
    }
    *lookup = (struct lookup){ .done = done, .context = context, .is_asking = true };
    struct ares_addrinfo_hints hints = { .ai_flags = ARES_AI_NOSORT, .ai_family = AF_UNSPEC };
    ares_getaddrinfo(resolver->channel, name, NULL, &hints, answer_came, lookup);
    lookup->is_asking = false;
    if (lookup->is_done) {
        free(lookup);
        return NULL;
    }
    plan_timer(resolver);
    return lookup;
}

void resolver_forget(struct lookup *lookup)
{
    if (lookup)
        lookup->done = NULL; /* freed when c-ares answers */
}

bool address_is_own(const struct in6_addr *address)
{
    struct ifaddrs *list;
    if (getifaddrs(&list) < 0)
        return true; /* unknown: treated as an address of this host */
    bool is_own = false;
    for (const struct ifaddrs *entry = list; entry && !is_own; entry = entry->ifa_next) {
        struct in6_addr own;
        if (!entry->ifa_addr)
            continue;
        if (entry->ifa_addr->sa_family == AF_INET) {
            struct sockaddr_in four;
            memcpy(&four, entry->ifa_addr, sizeof four);
            address_map(&four.sin_addr, &own);
        } else if (entry->ifa_addr->sa_family == AF_INET6) {
            struct sockaddr_in6 six;
            memcpy(&six, entry->ifa_addr, sizeof six);
            own = six.sin6_addr;
        } else
            continue;
        is_own = memcmp(&own, address, sizeof own) == 0;
    }
    freeifaddrs(list);
    return is_own;
}
