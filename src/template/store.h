/* store.h - where templates are kept: STATE/templates/NAME/{root/,manifest.json,digest}.
 *
 * The one that it took the place of is .previous-NAME. A template appears by one rename and
 * disappears by one rename. Directories whose names begin with a dot are work in progress; a
 * process that works in one holds its lock (flock), so that what a dead process left behind is
 * known by its free lock, and is swept. A template that is in use may be locked too (shared, on its
 * directory): it is then removed when the last user releases it. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>

/* Opens STATE/templates. Gives a descriptor, or -1.
 * With `make` it is made if it does not exist; without, ERR_NOT_FOUND. */
int store_open(const char *state, bool make, error *err);

/* Removes what interrupted builds and removals left, as far as no command works in it. */
int store_sweep(int store, error *err);

/* Makes a locked directory for work. Gives its name and descriptor. */
int store_begin(int store, const char *template, char *ret_name, size_t size, error *err);

/* Puts the finished directory, open as `place`, where the template was. What was there is kept for
 * store_rollback(); what was kept before goes away, or stays until it is unused. */
int store_publish(int store, int place, const char *working_name, const char *template, error *err);

/* Puts the template of before in its place, and keeps what was there: twice, and all is as it was.
 * Fails  ERR_NOT_FOUND  none is kept */
int store_rollback(int store, const char *template, error *err);

/* Removes a template and what is kept of before. Fails  ERR_NOT_FOUND  no such template */
int store_remove(int store, const char *template, error *err);

/* Gives the manifest of a template, which the caller puts back.
 * Fails  ERR_NOT_FOUND  no such template, or one that is not whole */
int store_manifest(int store, const char *template, struct json_object **ret_manifest, error *err);

/* Gives an array of the manifests of all templates, sorted by name. */
int store_list(int store, struct json_object **ret_manifests, error *err);
