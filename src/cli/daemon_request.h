/* daemon_request.h - one request to a daemon, and its whole answer as JSON. */
#pragma once

#include "base/error.h"
#include "http1/client.h"
#include "json/member.h"

#include <glovebox.h>

#include <json-c/json.h>

struct ask {
    const char *method, *path;
    json_object *body; /* borrowed; NULL: none */
    const char *key;   /* NULL: the owner of the daemon */
};

/* Gives *ret_answer, which the caller puts. Fails  as the API does, with its code and message;
 * GLB_E_CANCELLED. */
int ask_daemon(glb_client *client, const struct ask *ask, json_object **ret_answer, error *err);

/* Sends a GET to the daemon at `place` (NULL: the default) over a new connection, and reads the
 * head of the answer. The caller reads the body from *http, and ends it. On failure nothing is
 * open. */
struct question {
    const char *place, *path, *accept;
    const char *key; /* NULL: that of the environment, if any */
    int64_t max_ms;  /* for the head; also for the body, unless the caller sets it again */
};
int ask_open(const struct question *question, struct http *http, error *err);

/* The same, and its body: as text, which the caller frees, and as a value, which it puts. */
int ask_value(const struct question *question, char **ret_text, json_object **ret_value,
              error *err);

/* A member; "" or 0 if it is missing or null. */
const char *answer_text(json_object *object, const char *name);
json_object *list_of(json_object *object, const char *key); /* borrowed; NULL: there is none */
void print_filtered(const char *text);                      /* a line, without control sequences */
void print_json_line(json_object *value);                   /* the same */
/* Prints "title        value" on a line: objects and lists in words, without control bytes. */
void print_member(const char *title, json_object *value);
