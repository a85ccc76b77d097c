/* approved.h - packages that a person has approved for a template, beyond its recipe:
 * STATE/libs/NAME.approved.yaml, a file to be read by people, and STATE/libs/REQUEST/ with the
 * archives that were looked at. A build of the template gets these versions, or a failure. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>

enum { APPROVED_MAX = 64 };

/* Gives  *ret_rows, an array of objects whose members are texts, all there: name, version, manager
 *        ("pip", "apt"), file, sha256, request, with (the package that it comes along with),
 *        asked_by, approved_by, approved, reason. Empty if nothing was approved. The caller puts
 * it. Fails  ERR_BAD_REQUEST  "python.approved.yaml:7:3: cause; fix" */
int approved_read(const char *state, const char *template, struct json_object **ret_rows,
                  error *err);

/* Writes the whole file anew, below the folder that requests_open() gave. */
int approved_write(int requests, const char *template, struct json_object *rows, error *err);

/* A member of a row or of a request; "" if it is missing. */
const char *approved_text(struct json_object *row, const char *name);
