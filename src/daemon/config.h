/* config.h - changes settings and policies while runs go on.
 *
 * The parent sends lines "key=value" on a socket, or SETTINGS_REFUSED and the reason why it cannot
 * read them. The answer is "taken" or "refused"; the log says what changed, or why nothing did. All
 * values are checked before any is changed. API keys need no reload: they are looked up for each
 * request. */
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
    void (*applied)(const struct settings *); /* for settings that other parts hold; may be NULL */
    struct settings settings;                 /* in use */
    int socket;                               /* -1: none */
    uv_poll_t poll;
    bool is_open;
    bool is_private; /* serves one command: no audit entry and only errors in the log */
};

/* Reads lines "key=value" into `settings`; other keys keep their value. Fails  ERR_BAD_REQUEST. */
int reload_read(const char *text, struct settings *settings, error *err);

/* Gives each part the settings that are in use. */
void reload_apply(struct reload *reload);

/* Records in the audit log which policies are in force. */
int reload_tell_policies(const struct reload *reload, error *err);

/* Listens on the socket, whose owner it becomes, and sends "ready". */
int reload_open(struct reload *reload, uv_loop_t *loop, int socket, error *err);
void reload_close(struct reload *reload);
