/* verify.h - checks that a template is unchanged: computes its digest again from the files, and
 * compares it with that in the manifest. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

enum { TEMPLATE_DIGEST_SIZE = 72 }; /* "sha256:" and 64 digits */

/* The digest in a template's manifest, and that of its files. */
struct measured_template {
    char stated[TEMPLATE_DIGEST_SIZE];
    char measured[TEMPLATE_DIGEST_SIZE];
    bool is_same;
};

/* Measures the template whose directory is open as `place`. Reads every file of it. */
int template_measure(int place, struct json_object *manifest, struct measured_template *ret,
                     error *err);

/* The same for a template of the store, which is not removed meanwhile.
 * Fails  ERR_NOT_FOUND    no such template
 *        ERR_UNAVAILABLE  it is damaged, or a file of it cannot be read */
int template_verify(int store, const char *name, struct measured_template *ret, error *err);
