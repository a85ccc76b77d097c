/* template_view.h - the manifest of a template, for people and for programs. */
#pragma once

#include <json-c/json.h>

/* A text of the manifest, "" if it has none. It lives as long as the manifest. */
const char *template_text(struct json_object *manifest, const char *key);

/* What the files of templates and of requests call `created`, `asked` … is `created_at` … in every
 * answer, also in the rows of a list and in what was approved. */
void template_name_moments(struct json_object *object);

void template_print_json(struct json_object *object);  /* with those names, which it keeps */
void template_print_row(struct json_object *manifest); /* one line of a list */
void template_print(struct json_object *manifest);     /* languages, variables, packages */

/* On stderr, before a build begins: what its recipe says that it takes, and what the lock of its
 * packages of npm, if there is one, says of their size. */
void template_print_cost(struct json_object *recipe, const char *npm_lock);

/* The templates that come with glovebox and are not in the store (-1: there is none). */
void template_print_unbuilt(int store);
