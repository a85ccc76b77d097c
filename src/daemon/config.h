/* config.h - takes settings and policies while runs go on.
 *
 * The parent sends "key=value" lines on a socket of its own, or SETTINGS_REFUSED and why it cannot
 * read them, and gets "taken" or "refused"; what changed, or why not, stands in the log. Nothing is
 * changed before everything was checked. Keys need no reload: each request asks for them. */
#pragma once

#include "base/error.h"
#include "engine/catalog/policies.h"
#include "engine/run/queue.h"
#include "engine/schedule/accounts.h"
#include "policy/settings.h"

#include <stdbool.h>
#include <uv.h>

struct reload {
    struct runs *runs; /* borrowed, as all of these */
    struct accounts *accounts;
    struct policies *policies;
    struct pool *pool;
    const char *policies_path;
    void (*applied)(const struct settings *); /* for what others hold; may be NULL */
    struct settings settings;                 /* in use */
    int socket;                               /* -1: none */
    uv_poll_t poll;
    bool is_open;
    bool is_private; /* for one run: nothing waits, nothing is said but errors */
};

/* Reads "key=value" lines over what is set already. Fails  ERR_BAD_REQUEST. */
int reload_read(const char *text, struct settings *settings, error *err);

/* Puts the settings that are in use to where they hold. */
void reload_apply(struct reload *reload);

/* Writes into the log which policies hold. */
int reload_tell_policies(const struct reload *reload, error *err);

/* Listens on the socket, which it takes, and says "ready". */
int reload_open(struct reload *reload, uv_loop_t *loop, int socket, error *err);
void reload_close(struct reload *reload);
