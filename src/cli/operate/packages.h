/* packages.h - what is known of a template that has been built, and the way for a package into the
 * next build. */
#pragma once

#include "base/error.h"

#include <json-c/json.h>
#include <stdbool.h>

struct libs_arguments {
    const char *state;
    const char *template_name, *version, *reason;
    bool json, pip, npm, apt, all;
};

/* Request, review and decision. `id` is a request's; for `review` it may be NULL: those that wait,
 * or all. Each is recorded in the log before it is done. */
int libs_request(const struct libs_arguments *arguments, const char *name, error *err);
int libs_review(const struct libs_arguments *arguments, const char *id, error *err);
int libs_approve(const struct libs_arguments *arguments, const char *id, error *err);
int libs_deny(const struct libs_arguments *arguments, const char *id, error *err);
