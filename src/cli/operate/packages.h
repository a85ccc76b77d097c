/* packages.h - the packages of a built template, and requests to add more in the next build. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

struct libs_arguments {
    const char *state;
    const char *template_name, *version, *reason;
    bool json, pip, npm, apt, all;
};

/* Requests, reviews and decisions. `id` names a request; for `review` it may be NULL: those that
 * wait, or all. Each is recorded in the log before it takes effect. */
int libs_request(const struct libs_arguments *arguments, const char *name, error *err);
int libs_review(const struct libs_arguments *arguments, const char *id, error *err);
int libs_approve(const struct libs_arguments *arguments, const char *id, error *err);
int libs_deny(const struct libs_arguments *arguments, const char *id, error *err);
