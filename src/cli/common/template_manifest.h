/* template_manifest.h - the manifest of a template that has been built. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>

/* Gives *ret_manifest, which the caller puts; `state` is from --state, NULL if not given.
 * Fails  ERR_NOT_FOUND  it is not built: how to */
int read_template_manifest(const char *state, const char *template_name, json_object **ret_manifest,
                           error *err);
