/* ask.h - one request to a daemon, and its whole answer as JSON. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <json-c/json.h>

struct ask {
    const char *method, *path;
    json_object *body; /* borrowed; NULL: none */
    const char *key;   /* NULL: whoever owns the daemon */
};

/* Gives *ret_answer, which the caller puts. Fails  as the API does, with its code and words;
 * GLB_E_CANCELLED. */
int ask_daemon(glb_client *client, const struct ask *ask, json_object **ret_answer, error *err);

/* A member; NULL, "" or 0 if it is missing or null. */
json_object *answer_member(json_object *object, const char *name);
const char *answer_text(json_object *object, const char *name);
