/* service_watch_internal.h - watches, for the files of engine/service. */
#pragma once

#include "engine/service/service_runs.h"

/* NULL: it failed, and the run goes on. */
struct watch *watch_open(struct run *run, const struct watcher *watcher, error *err);

/* For a run of which only the result is known. Takes the result, also on failure. */
struct watch *watch_open_lost(const char *id, struct bytes *result, error *err);
