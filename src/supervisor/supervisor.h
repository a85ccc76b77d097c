/* supervisor.h - keeps glovebox-spawner and gloveboxd running behind sockets that stay open. */
#pragma once

#include "base/error.h"
#include "policy/settings.h"

#include <stddef.h>

struct supervised {
    const char *socket; /* path of the Unix socket */
    const struct settings *settings;
    char daemon_settings[SETTINGS_TEXT_MAX]; /* those of gloveboxd: "key=value" a line */

    /* On SIGHUP: gives the current settings, and in ret_restart those that need a restart. If it
     * fails nothing is changed. */
    int (*read_again)(void *context, char text[SETTINGS_TEXT_MAX], char *ret_restart, size_t size,
                      error *err);
    void *context;
};

/* Serves until SIGTERM or SIGINT. The sockets belong to this process, or to systemd (LISTEN_FDS):
 * when one of the two programs ends, both are started again, and clients wait instead of being
 * refused. On SIGTERM gloveboxd waits for the end of current runs, and ends; a second signal ends
 * the runs. READY=1 goes to NOTIFY_SOCKET when runs can be started (sd_notify(3)).
 * Fails  ERR_CONFLICT     another daemon serves this socket already
 *        ERR_UNAVAILABLE  the programs end at once, again and again: the last reason */
int supervise(const struct supervised *service, error *err);
