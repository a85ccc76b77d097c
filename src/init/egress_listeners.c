/* egress_listeners.c - the network of a sandbox whose policy allows egress. Its network namespace
 * has only the loopback interface, to which every address is declared local (ip-route(8), "local"),
 * and sockets listen there. They go to gloveboxd with HELLO, and from there to glovebox-egress,
 * which accepts connections to any address. No packet ever leaves the namespace. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

enum { NAMES_PORT = 53, PROXY_PORT = 3128, BACKLOG = 128 };

/* "local 0.0.0.0/0 dev lo" and "local ::/0 dev lo" (rtnetlink(7)). */
static int add_route(int netlink, int family, error *err)
{
    struct {
        struct nlmsghdr header;
        struct rtmsg route;
        struct rtattr attribute;
        uint32_t interface;
    } order = {
        .header = { .nlmsg_len = sizeof order,
                    .nlmsg_type = RTM_NEWROUTE,
                    .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK },
        .route = { .rtm_family = (unsigned char) family,
                   .rtm_table = RT_TABLE_LOCAL,
                   .rtm_protocol = RTPROT_STATIC,
                   .rtm_scope = RT_SCOPE_HOST,
                   .rtm_type = RTN_LOCAL },
        .attribute = { .rta_len = RTA_LENGTH(sizeof order.interface), .rta_type = RTA_OIF },
        .interface = if_nametoindex("lo"),
    };
    struct {
        struct nlmsghdr header;
        struct nlmsgerr cause;
        char rest[128]; /* the kernel returns the request behind the error */
    } answer = { 0 };
    if (send(netlink, &order, sizeof order, 0) < 0 || recv(netlink, &answer, sizeof answer, 0) < 0)
        return fail_os(err, "make every address local");
    errno = -answer.cause.error;
    if (answer.header.nlmsg_type != NLMSG_ERROR || errno != 0)
        return fail_os(err, "make every address local");
    return 0;
}

static bool has_six(void)
{
    auto_fd trial = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return trial >= 0;
}

/* Binds a socket for IPv6 and IPv4, or for IPv4 alone where the kernel has no IPv6. */
static int bind_everywhere(int socket, bool is_six, uint16_t port)
{
    int no = 0, yes = 1;
    struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
    struct sockaddr_in four = { .sin_family = AF_INET, .sin_port = htons(port) };
    if (!is_six)
        return setsockopt(socket, IPPROTO_IP, IP_PKTINFO, &yes, sizeof yes) < 0
                   ? -1
                   : bind(socket, (struct sockaddr *) &four, sizeof four);
    if (setsockopt(socket, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) < 0 ||
        setsockopt(socket, IPPROTO_IPV6, IPV6_RECVPKTINFO, &yes, sizeof yes) < 0)
        return -1;
    return bind(socket, (struct sockaddr *) &six, sizeof six);
}

static int listen_on(struct sandbox *sandbox, bool is_six, int kind, uint16_t port, error *err)
{
    auto_fd made = socket(is_six ? AF_INET6 : AF_INET, kind | SOCK_CLOEXEC, 0);
    if (made < 0 || bind_everywhere(made, is_six, port) < 0 ||
        (kind == SOCK_STREAM && listen(made, BACKLOG) < 0))
        return fail_os(err, "listen on port %u", port);
    sandbox->route[sandbox->route_count++] = take_fd(&made);
    return 0;
}

int open_egress_listeners(struct sandbox *sandbox, error *err)
{
    static const struct {
        int kind;
        uint16_t port;
    } fixed[] = { { SOCK_DGRAM, NAMES_PORT },
                  { SOCK_STREAM, NAMES_PORT },
                  { SOCK_STREAM, PROXY_PORT } };
    const struct spawn_route *route = &sandbox->spec.route;
    if (!route->is_open)
        return 0;
    bool is_six = has_six();
    auto_fd netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (netlink < 0)
        return fail_os(err, "open a socket for routes");
    if (add_route(netlink, AF_INET, err) < 0 || (is_six && add_route(netlink, AF_INET6, err) < 0))
        return -1;
    for_each(row, fixed)
        if (listen_on(sandbox, is_six, row->kind, row->port, err) < 0)
            return -1;
    for (unsigned i = 0; i < route->port_count; i++)
        if (listen_on(sandbox, is_six, SOCK_STREAM, route->ports[i], err) < 0)
            return -1;
    return 0;
}
