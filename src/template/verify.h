/* verify.h - is a template still what was built? Its digest stands in its manifest; here it is
 * computed again from the files. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

enum { TEMPLATE_DIGEST_SIZE = 72 }; /* "sha256:" and 64 digits */

/* What a template's manifest says that its files are, and what they are. */
struct measured_template {
    char stated[TEMPLATE_DIGEST_SIZE];
    char measured[TEMPLATE_DIGEST_SIZE];
    bool is_same;
};

/* Measures the one whose directory is open as `place`. Every file of it is read. */
int template_measure(int place, struct json_object *manifest, struct measured_template *ret,
                     error *err);

/* The same of a template in the store, which stays there as long as that takes.
 * Fails  ERR_NOT_FOUND    no such template
 *        ERR_UNAVAILABLE  it is damaged, or a file of it cannot be read */
int template_verify(int store, const char *name, struct measured_template *ret, error *err);
