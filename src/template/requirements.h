/* requirements.h - packages that a file of a project lists. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

/* Adds each requirement of a file as `pip freeze` and `pip-compile` write it: one a line, with
 * comments; digests are left out, since the template's lock has its own. Options of pip, addresses
 * and folders are refused.
 * Fails  ERR_BAD_REQUEST  "requirements.txt:3: cause; fix"
 *        ERR_NOT_FOUND    no such file */
int requirements_read(const char *file, struct json_object *list, error *err);

/* A file whose name ends in .toml or .lock is pyproject.toml or the lock of uv, Poetry, PDM or PEP
 * 751: it is read as TOML by pip's side of a build (helpers/project_file.py), behind its walls. */
bool requirements_are_of_project(const char *file);

/* Gives  *ret_project  {"name","text"}.  Fails  as requirements_read(). */
int requirements_read_project(const char *file, struct json_object **ret_project, error *err);
