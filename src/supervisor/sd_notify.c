/* sd_notify.c - two short protocols, so that no library is needed for them. */
#include "supervisor/sd_notify.h"

#include "base/cleanup.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { FIRST = 3 /* SD_LISTEN_FDS_START */ };

static const char *variable(const char *name)
{
    return getenv(name); /* NOLINT(concurrency-mt-unsafe): before there is a second thread */
}

static int check_socket(int fd, error *err)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_un path;
    } address = { 0 };
    socklen_t size = sizeof address;
    int listens = 0;
    socklen_t listens_size = sizeof listens;
    if (getsockname(fd, &address.any, &size) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) < 0 || !listens)
        return fail(err, ERR_BAD_REQUEST, "descriptor %d of LISTEN_FDS is no listening socket", fd);
    bool is_local =
        address.any.sa_family == AF_UNIX ||
        (address.any.sa_family == AF_INET && ntohl(address.v4.sin_addr.s_addr) >> 24 == 127) ||
        (address.any.sa_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&address.v6.sin6_addr));
    if (!is_local)
        return fail(err, ERR_POLICY,
                    "socket %d of LISTEN_FDS is open to other machines, and keys would cross the "
                    "network unencrypted; listen on 127.0.0.1 behind a proxy that speaks TLS",
                    fd - FIRST);
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? fail_os(err, "keep socket %d", fd) : 0;
}

int manager_sockets(int *ret_sockets, size_t max, error *err)
{
    const char *pid = variable("LISTEN_PID");
    const char *count = variable("LISTEN_FDS");
    if (!pid || !count || strtol(pid, NULL, 10) != getpid())
        return 0;
    unsigned long sockets = strtoul(count, NULL, 10);
    if (sockets > max)
        return fail(err, ERR_BAD_REQUEST, "LISTEN_FDS names %lu sockets; %zu are taken", sockets,
                    max);
    for (int i = 0; i < (int) sockets; i++) {
        if (check_socket(FIRST + i, err) < 0)
            return -1;
        ret_sockets[i] = FIRST + i;
    }
    return (int) sockets;
}

void manager_tell(const char *text)
{
    const char *path = variable("NOTIFY_SOCKET");
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    size_t length = path ? strlen(path) : 0;
    if (length < 2 || length >= sizeof address.sun_path || (path[0] != '/' && path[0] != '@'))
        return;
    memcpy(address.sun_path, path, length);
    if (path[0] == '@')
        address.sun_path[0] = '\0'; /* an abstract name */
    auto_fd fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        (void) sendto(fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *) &address,
                      (socklen_t) (offsetof(struct sockaddr_un, sun_path) + length));
}
