/* connect.c - connects to a daemon; by TCP only on this machine, since HTTP does not encrypt the
 * key.
 */
#include "client/connect.h"

#include "supervisor/install_paths.h"

#include "base/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Reads the usual names of loopback addresses; uses no resolver. */
static int read_address(const char *place, struct sockaddr_in6 *ret_address, socklen_t *ret_size,
                        error *err)
{
    const char *colon = strrchr(place, ':');
    size_t size = (size_t) (colon - place);
    long port = strlen(colon + 1) <= 5 ? strtol(colon + 1, NULL, 10) : 0;
    struct sockaddr_in *four = (struct sockaddr_in *) ret_address;
    if (port < 1 || port > 65535)
        return fail(err, ERR_BAD_REQUEST, "'%.60s' has no port from 1 to 65535", place);
    bool is_six = size == 5 && strncmp(place, "[::1]", size) == 0;
    bool is_four = (size == 9 && strncmp(place, "localhost", size) == 0) ||
                   (size == 9 && strncmp(place, "127.0.0.1", size) == 0);
    if (!is_six && !is_four)
        return fail(err, ERR_BAD_REQUEST,
                    "'%.60s' is not this machine, and the port speaks plain HTTP; bring it here: "
                    "ssh -L %ld:127.0.0.1:%ld HOST, then use 127.0.0.1:%ld",
                    place, port, port, port);
    *ret_size = is_six ? sizeof *ret_address : sizeof *four;
    if (is_six)
        *ret_address =
            (struct sockaddr_in6){ AF_INET6, htons((uint16_t) port), 0, in6addr_loopback, 0 };
    else
        *four = (struct sockaddr_in){
            AF_INET, htons((uint16_t) port), { htonl(INADDR_LOOPBACK) }, { 0 }
        };
    return 0;
}

static int nobody_answers(const char *place, error *err)
{
    bool is_refused = errno == ENOENT || errno == ECONNREFUSED;
    bool is_port = is_refused && place_is_address(place);
    const char *fix = strstr(place, "://") ? "name a socket, or a port as 127.0.0.1:7070"
                      : errno == EACCES    ? "ask the user who runs glovebox serve"
                      : is_refused         ? "start it: glovebox serve"
                                           : "see glovebox doctor";
    return fail(err, ERR_UNAVAILABLE, "no daemon answers at %s (%s); %s%s%s", place,
                strerrordesc_np(errno), fix, is_port ? " --listen " : "", is_port ? place : "");
}

int dial(const char *place, int *ret_fd, error *err)
{
    struct sockaddr_in6 address;
    struct sockaddr_un path = { .sun_family = AF_UNIX };
    const struct sockaddr *to = (const struct sockaddr *) &path;
    socklen_t size = sizeof path;
    bool is_address = place_is_address(place);
    if (is_address) {
        if (read_address(place, &address, &size, err) < 0)
            return -1;
        to = (const struct sockaddr *) &address;
    } else if (strlen(place) >= sizeof path.sun_path) {
        return fail(err, ERR_BAD_REQUEST, "the path of the socket is longer than %zu bytes",
                    sizeof path.sun_path - 1);
    } else {
        memcpy(path.sun_path, place, strlen(place) + 1);
    }
    auto_fd fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return fail_os(err, "make a socket");
    if (connect(fd, to, size) < 0)
        return nobody_answers(place, err);
    int on = 1;
    if (is_address)
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    *ret_fd = take_fd(&fd);
    return 0;
}

int key_of_caller(const char *key, const char **ret_key, error *err)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    if (!key)
        key = getenv("GLOVEBOX_API_KEY"); /* NOLINT(concurrency-mt-unsafe): no thread sets it */
    *ret_key = key && *key ? key : NULL;
    if (*ret_key && (strlen(key) > API_KEY_TEXT_MAX || strspn(key, plain) != strlen(key)))
        return fail(err, ERR_BAD_REQUEST,
                    "what is given as the API key is none; glovebox key create shows one: glb_…");
    return 0;
}
