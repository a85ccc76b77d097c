/* glovebox-egress - the only program of glovebox that makes connections on behalf of sandboxes.
 *
 *     glovebox-egress --daemon FD [--resolver ADDRESS:PORT] [--ca-file FD] [--secrets FD=PATH]
 *
 * Sandboxes reach it through sockets that listen inside their network namespaces. gloveboxd sends
 * it these sockets, with the rules of the run (contract/egress.h). It is unprivileged, opens no
 * file after its start, and ends when gloveboxd does. */
#include "egress/egress.h"

#include "base/cleanup.h"
#include "base/hosts_file.h"
#include "base/io_uring.h"
#include "base/signals.h"
#include "base/table.h"
#include "outbound/arguments.h"
#include "outbound/confine.h"

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

enum { CONNECTIONS_MAX = 1000 };

static const rlim_t fds_ours = 256; /* listeners come with channels */
static const rlim_t fds_each = 6;

/* Returns how many connections there may be at once, so that descriptors never run out. */
static unsigned raise_descriptors(void)
{
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return 1;
    files.rlim_cur = files.rlim_max;
    (void) setrlimit(RLIMIT_NOFILE, &files);
    if (getrlimit(RLIMIT_NOFILE, &files) < 0 || files.rlim_cur < 2 * fds_ours)
        return 1;
    rlim_t max = (files.rlim_cur - fds_ours) / (2 * fds_each); /* the other half: listeners */
    return max < CONNECTIONS_MAX ? (unsigned) max : CONNECTIONS_MAX;
}

/* The command line. `daemon`, `secrets` and `ca_file` are descriptors, -1 if not given. */
struct arguments {
    int daemon, secrets, ca_file;
    const char *resolver, *secrets_path, *ca_path;
};

static int read_arguments(int count, char **words, struct arguments *ret_arguments, error *err)
{
    struct arguments arguments = { .daemon = -1, .secrets = -1, .ca_file = -1 };
    const struct argument known[] = {
        { "--daemon", &arguments.daemon, NULL },
        { "--resolver", NULL, &arguments.resolver },
        { "--ca-file", &arguments.ca_file, &arguments.ca_path },
        { "--secrets", &arguments.secrets, &arguments.secrets_path },
    };
    if (arguments_read(count, words, known, COUNT_OF(known), err) < 0)
        return -1;
    if (arguments.daemon < 3)
        return fail(err, ERR_BAD_REQUEST, "only glovebox serve can start this program");
    *ret_arguments = arguments;
    return 0;
}

/* Reads all files, and closes them. */
static int prepare(struct egress *egress, const struct arguments *arguments, error *err)
{
    struct secrets *secrets = NULL;
    if (arguments->secrets >= 0 &&
        secrets_read(arguments->secrets, arguments->secrets_path, &secrets, err) < 0)
        return -1;
    if (upstreams_open(&egress->loop, secrets, arguments->ca_file, &egress->upstreams, err) < 0)
        return -1;
    if (interceptions_open(&egress->loop, &egress->interceptions, err) < 0)
        return -1;
    close_fd(&arguments->secrets);
    close_fd(&arguments->ca_file);
    egress->hosts = hosts_file_read();
    if (!egress->hosts)
        return fail(err, ERR_SYSTEM, "no memory for /etc/hosts");
    return resolver_open(&egress->loop, arguments->resolver, &egress->resolver, err);
}

static int serve(struct egress *egress, const struct arguments *arguments, error *err)
{
    if (refuse_io_uring(err) < 0)
        return -1;
    if (uv_loop_init(&egress->loop) < 0)
        return fail(err, ERR_SYSTEM, "make the event loop");
    if (prepare(egress, arguments, err) < 0 || confine_outside(err) < 0 ||
        link_open(egress, arguments->daemon, err) < 0)
        return -1;
    (void) uv_run(&egress->loop, UV_RUN_DEFAULT);
    return 0;
}

int main(int count, char **words)
{
    static struct egress egress;
    error err = { 0 };
    struct arguments arguments = { .daemon = -1, .secrets = -1, .ca_file = -1 };
    signals_outlive();
    (void) signal(SIGINT, SIG_IGN); /* Ctrl-C ends the parent, and then this program */
    egress.connections_max = raise_descriptors();
    if (read_arguments(count, words, &arguments, &err) == 0 &&
        serve(&egress, &arguments, &err) == 0)
        return 0;
    (void) fprintf(stderr, "glovebox-egress: %s\n", err.text);
    return err.code == ERR_BAD_REQUEST ? EXIT_MISCONFIGURED : 125;
}
