/* glovebox-egress - the only process of glovebox with a way out.
 *
 *     glovebox-egress --daemon FD [--resolver ADDRESS:PORT]
 *
 * Sandboxes reach it through sockets that listen inside their network namespaces; gloveboxd passes
 * those on with the rules of the run (contract/egress.h). It is unprivileged, opens no file after
 * its start, and ends when gloveboxd does. */
#include "egress/egress.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { CONNECTIONS_MOST = 1000 };

static const rlim_t fds_ours = 256; /* listeners come with channels */
static const rlim_t fds_each = 6;

/* Gives how many connections there may be at once, so that descriptors never run out. */
static unsigned raise_descriptors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 1;
    files.rlim_cur = files.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &files);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 2 * fds_ours)
        return 1;
    rlim_t most = (files.rlim_cur - fds_ours) / (2 * fds_each); /* the other half: listeners */
    return most < CONNECTIONS_MOST ? (unsigned) most : CONNECTIONS_MOST;
}

static int read_arguments(int count, char **arguments, int *ret_socket, const char **ret_server,
                          error *err)
{
    *ret_socket = -1;
    *ret_server = NULL;
    for (int i = 1; i + 1 < count; i += 2) {
        if (strcmp(arguments[i], "--daemon") == 0)
            *ret_socket = (int) strtol(arguments[i + 1], NULL, 10);
        else if (strcmp(arguments[i], "--resolver") == 0)
            *ret_server = arguments[i + 1];
        else
            return fail(err, ERR_BAD_REQUEST, "there is no option '%s'", arguments[i]);
    }
    if (*ret_socket < 3 || count % 2 == 0)
        return fail(err, ERR_BAD_REQUEST, "is started by glovebox serve, not by hand");
    return 0;
}

static int serve(struct egress *egress, int socket, const char *server, error *err)
{
    if (uv_loop_init(&egress->loop) < 0)
        return fail(err, ERR_SYSTEM, "make the event loop");
    if (resolver_open(&egress->loop, server, &egress->resolver, err) < 0 ||
        confine_egress(err) < 0 || link_open(egress, socket, err) < 0)
        return -1;
    (void) uv_run(&egress->loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int count, char **arguments)
{
    static struct egress egress;
    error err = { 0 };
    int socket;
    const char *server;
    (void) signal(SIGPIPE, SIG_IGN);
    (void) signal(SIGINT, SIG_IGN); /* a Ctrl-C is for whoever started us; our end follows theirs */
    egress.connections_most = raise_descriptors();
    if (read_arguments(count, arguments, &socket, &server, &err) == 0 &&
        serve(&egress, socket, server, &err) == 0)
        return 0;
    (void) fprintf(stderr, "glovebox-egress: %s\n", err.text);
    return 125;
}
