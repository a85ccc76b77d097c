/* template_watch.h - tells the spawner of templates: at the start, and when one is built, removed
 * or rolled back while runs and sessions go on.
 *
 * A template that was removed from the folder or replaced there is retired: no more sandboxes are
 * parked in it. It ends when its last sandbox has ended, and at least a minute later, for requests
 * that were granted it and still wait. */
#pragma once

#include "engine/catalog/policies.h"
#include "engine/catalog/templates.h"
#include "engine/sandbox/pool.h"

#include <uv.h>

struct template_watch {
    struct templates *templates; /* borrowed, as all of these */
    const struct policies *policies;
    struct pool *pool;
    int spawner; /* its socket */
    uv_fs_event_t folder;
    uv_timer_t look;
    bool has_changed; /* the folder, since it was last read */
    bool is_blind;    /* inotify failed: the folder is read every few seconds */
    bool is_open;
};

/* A `template_changed` (engine/catalog/templates.h): called for a template that was added, retired
 * or could not be read. Before the watch is open it is called only for the last of these. */
void template_watch_told(void *context, int index, const char *name, const error *cause);

/* Tells the spawner of all templates before anything else begins, so that the first zygotes start
 * at once. Without `warm` no zygotes are kept. */
int template_watch_tell(const struct templates *templates, int spawner, bool warm, error *err);

/* Parks sandboxes for the policies before the first run comes. */
void template_watch_keep(const struct template_watch *watch);

void template_watch_open(struct template_watch *watch, uv_loop_t *loop);
void template_watch_close(struct template_watch *watch);
