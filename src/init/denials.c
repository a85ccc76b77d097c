/* denials.c - the filter hands refused system calls to us; we answer with the errno of their row
 * and tell gloveboxd. The call is never carried out, or has no pointer among its arguments, so
 * there is nothing to race with (seccomp_unotify(2), "design goals"): no memory of the program is
 * read. */
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

/* Netlink sockets in this network namespace, from the row "NETLINK 1128 3 …" (name, bytes of one,
 * sockets) of a table of the kernel. What cannot be known counts as too many. */
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

/* The kernel carries the call out itself. A call of the same moment was counted before it:
 * there may be more by as many as a sandbox has threads. */
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
    /* Enough: without a listener the kernel itself answers ENOSYS, at full speed. */
    (void) close(*listener);
    *listener = -1;
}
