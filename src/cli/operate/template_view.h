/* template_view.h - prints the manifest of a template as text or JSON. */
#pragma once

#include <json-c/json.h>

/* A text of the manifest, "" if it has none; valid as long as the manifest. */
const char *template_text(struct json_object *manifest, const char *key);

/* Renames the times in an object: files of templates and requests have `created`, `asked` …; every
 * answer, also its rows and approvals, has `created_at` …. */
void template_name_moments(struct json_object *object);

void template_print_json(struct json_object *object);  /* renames the times in it */
void template_print_row(struct json_object *manifest); /* one line of a list */
void template_print(struct json_object *manifest);     /* languages, variables, packages */

/* Before a build, prints on stderr what the recipe says that it takes, and what the lock file of
 * its npm packages, if any, says of their size. */
void template_print_cost(struct json_object *recipe, const char *npm_lock);

/* Prints the templates that come with glovebox and are not in the store (-1: no store). */
void template_print_unbuilt(int store);
