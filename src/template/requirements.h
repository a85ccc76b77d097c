/* requirements.h - packages that a file lists for pip. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>

/* Adds each requirement of a file as `pip freeze` and `pip-compile` write it: one a line, with
 * comments; digests are left out, since the template's lock has its own. Options of pip, addresses
 * and folders are refused.
 * Fails  ERR_BAD_REQUEST  "requirements.txt:3: cause; fix"
 *        ERR_NOT_FOUND    no such file */
int requirements_read(const char *file, struct json_object *list, error *err);
