/* review.h - looks at what was asked for: fetched with the operator's own pip, apt or
 * npm and read, never run, never installed. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

/* True for a name that this manager could know, and for a version ("" is none) of it. */
bool review_name_is_valid(const char *manager, const char *name);
bool review_version_is_valid(const char *version);

/* Fetches the archives of `request` (members id, template, manager, name, version) into its folder,
 * which is made anew.
 * Gives  *ret_facts, which the caller puts: source, for, replaces, and files, the asked one first,
 *        each with name, version, file, bytes, sha256, licence, maintainer, about, needs, commands,
 *        machine_code, runs_at_install, runs_at_start; of npm also place, integrity (of
 *        the archive that the registry has) and not_run. Texts are clean.
 * Fails  ERR_UNAVAILABLE  no such package, no wheel of it, no index, no client: says which */
int review_package(const char *state, int requests, struct json_object *request,
                   struct json_object **ret_facts, error *err);
