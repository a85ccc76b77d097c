/* template_watch.h - tells the spawner of the templates: at start, and when one is built, removed
 * or rolled back while runs and sessions go on.
 *
 * One that is gone from the folder, or has another in its place, is retired: nothing parks in it
 * any more. It ends when its last sandbox has, and what was granted in it and waits had a minute.
 */
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
    bool has_changed; /* the folder, since it was looked at */
    bool is_blind;    /* the kernel watches no folder for us: it is looked at every few seconds */
    bool is_open;
};

/* A `template_changed` (engine/catalog/templates.h): what becomes of a template that was added,
 * retired or could not be read. Before the watch is open only the last is told. */
void template_watch_told(void *context, int index, const char *name, const error *cause);

/* Tells the spawner of all, before anything else begins: the first of them starts at once. Without
 * `warm` no interpreter is kept to fork. */
int template_watch_tell(const struct templates *templates, int spawner, bool warm, error *err);

/* Parks what most runs ask for before the first of them comes. */
void template_watch_keep(const struct template_watch *watch);

void template_watch_open(struct template_watch *watch, uv_loop_t *loop);
void template_watch_close(struct template_watch *watch);
