/* template_manifest.h - reads the manifest of a template. */
#pragma once

#include "base/error.h"
#include "json/member.h"

/* Gives *ret_manifest, which the caller puts; `state` is from --state, NULL if not given.
 * Fails  ERR_NOT_FOUND  it is not built; says how to build it */
int read_template_manifest(const char *state, const char *template_name, json_object **ret_manifest,
                           error *err);
