/* approved.h - packages that a person has approved for a template, in addition to its recipe:
 * STATE/libs/NAME.approved.yaml, a file that people can read, and STATE/libs/REQUEST/ with the
 * reviewed archives. A build of the template uses exactly these, or fails. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>

enum { APPROVED_MAX = 64 };

/* Gives  *ret_rows, an array of objects with all of these texts: name, version, manager ("pip",
 *        "apt"), file, sha256, request, with (the package that needs it), asked_by, approved_by,
 *        approved, reason. Empty if nothing was approved. The caller puts it.
 * Fails  ERR_BAD_REQUEST  "python.approved.yaml:7:3: cause; fix" */
int approved_read(const char *state, const char *template, struct json_object **ret_rows,
                  error *err);

/* Replaces the whole file, below the folder that requests_open() gave. */
int approved_write(int requests, const char *template, struct json_object *rows, error *err);

/* A member of a row or of a request; "" if it is missing. */
const char *approved_text(struct json_object *row, const char *name);
