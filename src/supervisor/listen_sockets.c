/* listen_sockets.c - the sockets that gloveboxd listens on. They stay open when it restarts. */
#include "supervisor/listen_sockets.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"
#include "supervisor/sd_notify.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { BACKLOG = 4096 }; /* the kernel reduces it to net.core.somaxconn: listen(2) */

/* Removes a socket that a dead daemon has left; fails if a daemon answers there. */
static int clear_old_socket(const char *path, const struct sockaddr_un *address, error *err)
{
    struct stat status;
    if (lstat(path, &status) < 0)
        return errno == ENOENT ? 0 : fail_os(err, "look at '%s'", path);
    if (!S_ISSOCK(status.st_mode))
        return fail(err, ERR_CONFLICT, "'%s' exists and is no socket; choose another --socket",
                    path);
    auto_fd probe = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe < 0)
        return fail_os(err, "make a socket");
    if (connect(probe, (const struct sockaddr *) address, sizeof *address) == 0 || errno == EAGAIN)
        return fail(err, ERR_CONFLICT,
                    "a daemon serves '%s' already; end it or choose another --socket", path);
    return unlink(path) < 0 ? fail_os(err, "remove the old socket '%s'", path) : 0;
}

static int listen_unix(const char *path, int *ret_fd, error *err)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    if (strlen(path) >= sizeof address.sun_path)
        return fail(err, ERR_BAD_REQUEST,
                    "the path of the socket is longer than %zu bytes; choose "
                    "another --socket",
                    sizeof address.sun_path - 1);
    memcpy(address.sun_path, path, strlen(path) + 1);
    auto_text folder = NULL;
    if (format_text(&folder, err, "%s", path) < 0)
        return -1;
    char *slash = strrchr(folder, '/');
    if (slash && slash != folder) {
        *slash = '\0';
        if (make_folder(folder, 0755, err) < 0)
            return -1;
    }
    if (clear_old_socket(path, &address, err) < 0)
        return -1;
    auto_fd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_os(err, "make a socket");
    /* A user that can open it can run code: only its owner. */
    mode_t before = umask(0177);
    int bound = bind(fd, (const struct sockaddr *) &address, sizeof address);
    (void) umask(before);
    if (bound < 0 || listen(fd, BACKLOG) < 0)
        return fail_os(err, "listen on '%s'", path);
    *ret_fd = take_fd(&fd);
    return 0;
}

int listen_address_read(const char *text, struct sockaddr_storage *ret_address, socklen_t *ret_size,
                        error *err)
{
    char host[64];
    const char *colon = strrchr(text, ':');
    char *end = NULL;
    unsigned long port =
        colon && colon[1] >= '0' && colon[1] <= '9' ? strtoul(colon + 1, &end, 10) : 0;
    size_t length = colon ? (size_t) (colon - text) : 0;
    if (port < 1 || port > 65535 || *end || length == 0 || length >= sizeof host)
        return fail(err, ERR_BAD_REQUEST,
                    "listen takes ADDRESS:PORT such as 127.0.0.1:7070, not '%s'", text);
    (void) snprintf(host, sizeof host, "%.*s", (int) length, text);
    struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons((uint16_t) port) };
    struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t) port) };
    bool is_loopback;
    if (host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        if (inet_pton(AF_INET6, host + 1, &v6.sin6_addr) != 1)
            return fail(err, ERR_BAD_REQUEST, "'%s' is no address", text);
        is_loopback = IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
        memcpy(ret_address, &v6, sizeof v6);
        *ret_size = sizeof v6;
    } else {
        if (inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &v4.sin_addr) !=
            1)
            return fail(err, ERR_BAD_REQUEST, "'%s' is no address; give numbers: 127.0.0.1:7070",
                        text);
        is_loopback = ntohl(v4.sin_addr.s_addr) >> 24 == 127;
        memcpy(ret_address, &v4, sizeof v4);
        *ret_size = sizeof v4;
    }
    if (!is_loopback)
        return fail(
            err, ERR_POLICY,
            "%s is open to other machines, and keys would cross the network unencrypted; listen on "
            "127.0.0.1 behind a proxy that speaks TLS",
            text);
    return 0;
}

static int listen_tcp(const char *text, int *ret_fd, error *err)
{
    struct sockaddr_storage address = { 0 };
    socklen_t size = 0;
    if (listen_address_read(text, &address, &size, err) < 0)
        return -1;
    auto_fd fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int yes = 1;
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) < 0 ||
        bind(fd, (const struct sockaddr *) &address, size) < 0 || listen(fd, BACKLOG) < 0)
        return fail_os(err, "%slisten on %s",
                       errno == EADDRINUSE ? "end what has this port, or take another: "
                       : errno == EACCES   ? "take a higher port, such as 7070: "
                                           : "",
                       text);
    *ret_fd = take_fd(&fd);
    return 0;
}

int listen_sockets_open(const struct supervised *service, struct launch_plan *plan, char **ret_path,
                        error *err)
{
    auto_text path = NULL;
    int given = manager_sockets(plan->listens, LAUNCH_FDS_MAX, err);
    if (given != 0) {
        plan->listen_count = given > 0 ? (size_t) given : 0;
        return given < 0 ? -1 : 0;
    }
    if (service->socket[0] == '/') {
        if (format_text(&path, err, "%s", service->socket) < 0)
            return -1;
    } else {
        auto_text here = getcwd(NULL, 0);
        if (!here || format_text(&path, err, "%s/%s", here, service->socket) < 0)
            return fail_os(err, "find the current folder");
    }
    /* The Unix socket comes last: it is a file, and must not be left when something else fails. */
    auto_fd tcp_socket = -1;
    const char *tcp = settings_text(service->settings, SETTING_listen);
    if ((tcp && listen_tcp(tcp, &tcp_socket, err) < 0) ||
        listen_unix(path, &plan->listens[0], err) < 0)
        return -1;
    plan->listens[1] = take_fd(&tcp_socket);
    plan->listen_count = tcp ? 2 : 1;
    *ret_path = take_text(&path);
    return 0;
}
