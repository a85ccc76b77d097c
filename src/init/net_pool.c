/* net_pool.c - the table of network namespaces: which sandbox is in each, and which are free. */
#include "init/net_pool.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum { PLACES = 256, RESTING_MAX = 16, QUIET_MS = 1000 };

/* The descriptors of the pool have high numbers, so that those of an order get low ones, on which
 * the clone relies when it moves its own (close_descriptors in recipe.c). */
enum { DESCRIPTORS_FROM = 128 };

enum place_state { PLACE_FREE, PLACE_USED, PLACE_RESTING, PLACE_STATES };

static struct place {
    enum place_state state;
    int net;
    int init; /* USED: pidfd */
    uint32_t tenant;
    uint64_t since; /* a count of changes: the smallest has been in its state for longest */
} places[PLACES];

static unsigned count_in[PLACE_STATES] = { PLACES };
static uint64_t turn;
static int home = -1;
static int ends = -1; /* epoll: sandboxes that have ended */

/* Takes: `fd`. */
static int keep_above(int fd)
{
    auto_fd low = fd;
    return low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, DESCRIPTORS_FROM);
}

static int open_net(void)
{
    return keep_above(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
}

void net_pool_open(void)
{
    home = open_net();
    ends = home < 0 ? -1 : keep_above(epoll_create1(EPOLL_CLOEXEC));
}

static void go_into(struct place *place, enum place_state state)
{
    count_in[place->state]--;
    count_in[state]++;
    place->state = state;
    place->since = ++turn;
}

static void part_from_sandbox(struct place *place)
{
    /* The spawner has the pidfd open as well, so close(2) does not remove it from epoll. */
    (void) epoll_ctl(ends, EPOLL_CTL_DEL, place->init, NULL);
    (void) close(place->init);
}

/* The kernel ends the namespace once no process is in it. */
static void forget(struct place *place)
{
    if (place->state == PLACE_USED)
        part_from_sandbox(place);
    (void) close(place->net);
    go_into(place, PLACE_FREE);
}

static struct place *longest_in(enum place_state state, const struct build_sandbox *for_tenant_of)
{
    struct place *found = NULL;
    for_each(place, places)
        if (place->state == state && (!for_tenant_of || place->tenant == for_tenant_of->tenant) &&
            (!found || place->since < found->since))
            found = place;
    return found;
}

/* The pidfd of a pid namespace's init becomes readable when all its processes have ended
 * (zap_pid_ns_processes in kernel/pid_namespace.c comes before exit_notify), and their files are
 * closed. */
static void hear_ends(void)
{
    struct epoll_event events[32];
    int count;
    do {
        count = epoll_wait(ends, events, COUNT_OF(events), 0);
        for (int i = 0; i < count; i++) {
            struct place *place = &places[events[i].data.u32 % PLACES];
            part_from_sandbox(place);
            go_into(place, PLACE_RESTING);
        }
    } while (count == COUNT_OF(events));
    struct place *oldest;
    while (count_in[PLACE_RESTING] > RESTING_MAX && (oldest = longest_in(PLACE_RESTING, NULL)))
        forget(oldest);
}

/* Has the network namespace of this process no socket, so that another sandbox may have it?
 *
 * A program without a network may make sockets of AF_UNIX and of NETLINK_ROUTE (default.syscalls).
 * It cannot change the namespace, which belongs to the fork server's user namespace, where no
 * sandbox has a capability: interfaces, addresses, rules, names of other namespaces and sysctls are
 * unchanged. Only sockets can be left, with abstract names, queued messages and descriptors in
 * flight. "used" counts every socket of any family that keeps this namespace alive (sk_alloc in
 * net/core/sock.c) until its last reference is dropped (__sk_free): also one in flight, and one of
 * netlink that waits for RCU. */
static bool has_no_socket(void)
{
    static const char none[] = "sockets: used 0\n";
    char text[sizeof none - 1];
    auto_fd file = open("/proc/self/net/sockstat", O_RDONLY | O_CLOEXEC);
    return file >= 0 && read(file, text, sizeof text) == (ssize_t) sizeof text &&
           memcmp(text, none, sizeof text) == 0;
}

static void go_home(void)
{
    if (setns(home, CLONE_NEWNET) < 0)
        _exit(1); /* zygotes and other tenants' sandboxes must not begin here */
}

/* Enters a free namespace without sockets. One that has sockets is dropped: it may always keep
 * them. */
static struct place *enter_rested(const struct build_sandbox *spec)
{
    struct place *place;
    while ((place = longest_in(PLACE_RESTING, spec))) {
        if (setns(place->net, CLONE_NEWNET) == 0 && has_no_socket())
            return place;
        forget(place);
    }
    return NULL;
}

static struct place *enter_fresh(const struct build_sandbox *spec)
{
    struct place *place = longest_in(PLACE_FREE, NULL);
    if (!place) { /* take the entry of the oldest sandbox, a session's: it keeps its namespace */
        place = longest_in(PLACE_USED, NULL);
        if (!place)
            return NULL;
        forget(place);
    }
    if (unshare(CLONE_NEWNET) < 0)
        return NULL;
    place->net = open_net();
    if (place->net < 0)
        return NULL;
    place->tenant = spec->tenant;
    go_into(place, PLACE_RESTING);
    return place;
}

/* Not in test builds that leave a wall out: they test the other walls alone. */
int net_pool_enter(const struct build_sandbox *spec)
{
    if (ends < 0 || spec->network != SPAWN_NETWORK_NONE || spec->disabled_walls_low != 0)
        return NET_POOL_NONE;
    hear_ends();
    struct place *place = enter_rested(spec);
    if (!place)
        place = enter_fresh(spec);
    if (place)
        return (int) (place - places);
    go_home();
    return NET_POOL_NONE;
}

void net_pool_leave(int number, int init)
{
    if (number == NET_POOL_NONE)
        return;
    int os = errno;
    struct place *place = &places[number];
    struct epoll_event event = { .events = EPOLLIN, .data.u32 = (uint32_t) number };
    go_home();
    int ours = init < 0 ? -1 : fcntl(init, F_DUPFD_CLOEXEC, DESCRIPTORS_FROM);
    if (ours >= 0 && epoll_ctl(ends, EPOLL_CTL_ADD, ours, &event) == 0) {
        place->init = ours;
        go_into(place, PLACE_USED);
    } else {
        close_fd(&ours);
        forget(place);
    }
    errno = os;
}

/* While orders follow one another, only the next one wakes this process; after that, ends of
 * sandboxes do, so that the namespaces of a burst are dropped. */
void net_pool_wait(int socket)
{
    struct pollfd waits[] = { { .fd = socket, .events = POLLIN },
                              { .fd = ends, .events = POLLIN } };
    if (ends < 0 || count_in[PLACE_USED] == 0 || poll(waits, 1, QUIET_MS) != 0)
        return;
    while (count_in[PLACE_USED] > 0 && poll(waits, 2, -1) > 0 && waits[0].revents == 0)
        hear_ends();
}
