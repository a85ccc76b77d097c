/* supervisor.h - keeps glovebox-spawner and gloveboxd running behind sockets that stay open. */
#pragma once

#include "base/error.h"
#include "policy/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct supervised {
    const char *state;  /* NULL: the default */
    const char *socket; /* path of the Unix socket */
    const char *listen; /* "127.0.0.1:7070", NULL for none */
    unsigned slots;
    const char *log_sync, *log_keep, *log_witness; /* as gloveboxd takes them; NULL: not given */
    const char *secrets; /* file with the credentials of endpoints; NULL: none */
    const char *ca_file; /* certificates that their upstreams are checked with; or NULL */
    const char *webhook, *webhook_secret; /* where approvals are sent; NULL: nowhere */
    unsigned webhook_attempts;
    const char *resolver;             /* ADDRESS:PORT for names of policies; NULL: the host's own */
    bool no_keys;                     /* anyone who reaches the TCP port may run code */
    char settings[SETTINGS_TEXT_MAX]; /* for gloveboxd: "key=value" a line */

    /* On SIGHUP: gives the settings of now, and in ret_restart those that only a restart changes.
     * If it fails nothing is changed. */
    int (*read_again)(void *context, char text[SETTINGS_TEXT_MAX], char *ret_restart, size_t size,
                      error *err);
    void *context;
};

/* Serves until SIGTERM or SIGINT. The sockets belong to this process, or to systemd (LISTEN_FDS):
 * when one of the two programs dies, both are started again and clients wait meanwhile instead of
 * being refused. On SIGTERM gloveboxd is asked to end: it lets runs come to their end first; a
 * second signal ends them. READY=1 goes to NOTIFY_SOCKET when runs can be taken (sd_notify(3)).
 * Fails  ERR_CONFLICT     another daemon serves this socket already
 *        ERR_UNAVAILABLE  the programs end at once, again and again: the last reason */
int supervise(const struct supervised *service, error *err);
