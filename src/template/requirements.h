/* requirements.h - reads the packages that a file of a project lists. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

/* Adds each requirement of a file in the format of `pip freeze` and `pip-compile`: one in a line,
 * with comments. Digests are left out, since the template's lock has its own. Options of pip, URLs
 * and folders are refused. Fails  ERR_BAD_REQUEST  "requirements.txt:3: cause; fix" ERR_NOT_FOUND
 * no such file */
int requirements_read(const char *file, struct json_object *list, error *err);

/* True for a name that ends in .toml or .lock: pyproject.toml, or the lock of uv, Poetry, PDM or
 * PEP 751. helpers/project_file.py reads it as TOML, behind the walls of the build. */
bool requirements_are_of_project(const char *file);

/* Gives  *ret_project  {"name","text"}.  Fails  as requirements_read(). */
int requirements_read_project(const char *file, struct json_object **ret_project, error *err);
