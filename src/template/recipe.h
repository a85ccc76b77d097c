/* recipe.h - reads the recipe of a template, a YAML file; every key is checked.
 *
 * The result is a JSON object with the keys of the file, so that runners can be copied to the
 * manifest: name, description, base, disk (bytes), takes, packages, pip, npm, leave_out, languages,
 * env, zygotes, prepare. */
#pragma once

#include "base/error.h"
#include "json/member.h"

#include <stdbool.h>

/* The file that a template's Node.js loads before each program: furnish_tree() writes it. */
#define RECIPE_NODE_START "usr/local/lib/glovebox/node.js"

enum { RECIPE_NAME_MAX = 63, RECIPE_FILE_MAX = 64 * 1024 };

/* Reads and checks a file. The result has all keys; those left out are empty.
 * Gives  *ret_recipe, which the caller frees with json_object_put().
 * Fails  ERR_BAD_REQUEST  "python.yaml:7:3: cause; fix"
 *        ERR_NOT_FOUND    no such file */
int recipe_read(const char *file, struct json_object **ret_recipe, error *err);

/* The same for a text; `label` is the name of the file in failures. */
int recipe_parse(const char *label, const char *text, size_t length,
                 struct json_object **ret_recipe, error *err);

/* Gives the text of a file, ended by NUL, which the caller frees.
 * Fails  ERR_BAD_REQUEST  it is not a file, or has more than `most` bytes
 *        ERR_NOT_FOUND */
int recipe_read_text(const char *file, size_t most, char **ret_text, size_t *ret_size, error *err);

/* True for [a-z0-9-]{1,63}, as for policies. */
bool recipe_name_is_valid(const char *name);
