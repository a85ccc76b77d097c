/* service_watch_internal.h - how the files of engine/service open a watch. */
#pragma once

#include "engine/service/service_runs.h"

/* NULL: it failed, and the run goes on. */
struct watch *watch_open(struct run *run, const struct watcher *watcher, error *err);

/* Of a run that is known by its result only. Takes the result, also when it fails. */
struct watch *watch_open_lost(const char *id, struct bytes *result, error *err);
