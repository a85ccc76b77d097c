/* denials.c - the filter passes refused system calls to init, which answers with the errno of their
 * row and tells gloveboxd. A call is either refused, or let through only if it has no pointer among
 * its arguments: a program cannot change what was checked (seccomp_unotify(2), "design goals"). */
#include "init/init.h"

#include "base/cleanup.h"
#include "seccomp/refusals.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { NETLINK_MAX = 32, TABLE_MAX = 8192 };

/* Counts netlink sockets in this network namespace, from the row "NETLINK 1128 3 …" (name, bytes of
 * one, sockets) of /proc/self/net/protocols. If that cannot be read, it returns too many. */
static unsigned long count_netlink(void)
{
    static const char name[] = "\nNETLINK ";
    char text[TABLE_MAX];
    size_t size = 0;
    ssize_t got = -1;
    auto_fd table = open("/proc/self/net/protocols", O_RDONLY | O_CLOEXEC);
    while (table >= 0 && size < sizeof text - 1 &&
           (got = read(table, text + size, sizeof text - 1 - size)) > 0)
        size += (size_t) got;
    text[size] = '\0';
    char *row = strstr(text, name);
    if (!row)
        return NETLINK_MAX;
    (void) strtoul(row + sizeof name - 1, &row, 10);
    return strtoul(row, NULL, 10);
}

/* Lets the kernel carry the call out. Calls at the same moment may be counted before either is
 * made: the bound can be exceeded by as many sockets as a sandbox has threads. */
static bool let_pass(int listener, uint64_t id)
{
    struct seccomp_notif_resp answer = { .id = id, .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE };
    return ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer) == 0;
}

void answer_denial(struct sandbox *sandbox, uint32_t id, int *listener)
{
    struct seccomp_notif seen = { 0 };
    if (ioctl(*listener, SECCOMP_IOCTL_NOTIF_RECV, &seen) < 0)
        return; /* ENOENT: the caller died meanwhile */
    uint64_t arguments[6];
    for (unsigned i = 0; i < 6; i++)
        arguments[i] = seen.data.args[i];
    const struct refusal *refusal = find_refusal((uint32_t) seen.data.nr, arguments);
    if (refusal && refusal->counted && count_netlink() < NETLINK_MAX &&
        let_pass(*listener, seen.id))
        return;
    int os = refusal ? refusal->os : EPERM;
    struct seccomp_notif_resp answer = { .id = seen.id, .error = -os };
    (void) ioctl(*listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);

    if (sandbox->denials >= AGENT_DENIALS_MAX)
        return; /* of a session: the count starts again with its next cell */
    struct agent_denial denial = { .call = (uint32_t) seen.data.nr, .os = os, .pid = seen.pid };
    memcpy(denial.arguments, arguments, sizeof denial.arguments);
    send_frame(sandbox, AGENT_DENIAL, 0, id, &denial, sizeof denial, NULL, 0);
    if (++sandbox->denials < AGENT_DENIALS_MAX || sandbox->is_kept)
        return;
    /* The most that are reported: without a listener the kernel answers ENOSYS by itself. */
    (void) close(*listener);
    *listener = -1;
}
