/* recipe_words.h - checks of texts in recipes. */
#pragma once

#include <json-c/json.h>
#include <stdbool.h>

bool recipe_is_package(const char *text); /* the name of a Debian package */
bool recipe_is_cran(const char *text);
bool recipe_is_requirement(const char *text); /* a name in the package index, with versions */
bool recipe_is_npm(const char *text);         /* a name in npm's registry, with versions */
bool recipe_is_npm_name(const char *text);   /* "left", or with a publisher's scope "@scope/left" */
bool recipe_is_inner_path(const char *text); /* in the root, without the leading '/' */
bool recipe_is_argument(const char *text);
bool recipe_is_file_name(const char *text);
bool recipe_is_language(const char *text);
bool recipe_is_variable(const char *text);
bool recipe_is_module(const char *text);

/* Adds values that follow from the lists of a recipe. */
void recipe_complete(struct json_object *recipe);
