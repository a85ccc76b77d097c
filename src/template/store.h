/* store.h - the store of templates: STATE/templates/NAME/{root/,manifest.json,digest}.
 *
 * The previous version of a template is .previous-NAME. A template appears and disappears by one
 * rename(2). Directories whose names begin with a dot are work in progress; a process that works in
 * one holds its lock (flock(2)), so that a directory of a dead process has a free lock, and is
 * removed by the next sweep. A template in use may be locked too (shared, on its directory): it is
 * then removed when the last user releases it. */
#pragma once

#include "base/error.h"
#include "json/member.h"

#include <stdbool.h>
#include <stddef.h>

/* Opens STATE/templates. Returns a descriptor, or -1. `make` makes it if it does not exist; without
 * `make` that is ERR_NOT_FOUND. */
int store_open(const char *state, bool make, error *err);

/* Removes what interrupted builds and removals have left, unless a command works in it. */
int store_sweep(int store, error *err);

/* Makes a locked directory for work. Gives its name and descriptor. */
int store_begin(int store, const char *template, char *ret_name, size_t size, error *err);

/* Replaces the template by the finished directory, open as `place`. The old version is kept for
 * store_rollback(); the one before it is removed when it is not in use. */
int store_publish(int store, int place, const char *working_name, const char *template, error *err);

/* Exchanges the template with its previous version; a second call undoes that.
 * Fails  ERR_NOT_FOUND  none is kept */
int store_rollback(int store, const char *template, error *err);

/* Removes a template and its previous version. Fails  ERR_NOT_FOUND  no such template */
int store_remove(int store, const char *template, error *err);

/* Gives the manifest of a template, which the caller puts.
 * Fails  ERR_NOT_FOUND  no such template, or an incomplete one */
int store_manifest(int store, const char *template, struct json_object **ret_manifest, error *err);

/* Gives an array of the manifests of all templates, sorted by name. */
int store_list(int store, struct json_object **ret_manifests, error *err);
