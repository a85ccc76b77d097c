/* precheck_request.h - asks a daemon to check code without running it. */
#pragma once

#include "base/error.h"
#include "json/member.h"

#include <glovebox.h>

#include <stdbool.h>

struct look {
    const char *code;
    size_t code_size;
    const char *language, *policy; /* NULL: as the daemon chooses */
};

/* Gives *ret_result, the whole result with its `checks`, which the caller puts.
 * Fails  as the API does, with its code and message */
int look_at_code(glb_client *client, const struct look *look, json_object **ret_result, error *err);

/* Starts a private daemon with this template first. Gives *ret_client, closed with glb_close(). */
int look_connect_private(const char *state, const char *template_name, glb_client **ret_client,
                         error *err);

/* The decision: "allow", "warn", "ask", "deny". */
const char *look_decision(json_object *result);

/* The findings, by index; false after the last. */
struct look_finding {
    const char *rule, *decision, *subject;
    int line;
};
bool look_finding_at(json_object *result, size_t index, struct look_finding *ret_finding);
const char *look_failure(json_object *result); /* why it was not checked; NULL: it was */
