/* review.h - reviews requested packages: fetches them with the operator's pip, apt or npm, and
 * reads them, but never runs or installs them. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

/* True for a possible package name of this manager, and for a possible version ("" means any). */
bool review_name_is_valid(const char *manager, const char *name);
bool review_version_is_valid(const char *version);

/* Fetches the archives of `request` (members id, template, manager, name, version) into its folder,
 * which is emptied first.
 * Gives  *ret_facts, which the caller puts: source, for, replaces, and files, the requested one
 * first, each with name, version, file, bytes, sha256, licence, maintainer, about, needs, commands,
 *        machine_code, runs_at_install, runs_at_start; of npm also place, integrity (of
 *        the registry's archive) and not_run. Texts have no control characters.
 * Fails  ERR_UNAVAILABLE  no such package, no wheel of it, no index, no client: says which */
int review_package(const char *state, int requests, struct json_object *request,
                   struct json_object **ret_facts, error *err);
