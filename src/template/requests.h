/* requests.h - requests for packages: STATE/libs/ID/request.json, and next to it the archives that
 * a review has fetched. See docs/templates.md. */
#pragma once

#include "base/error.h"
#include "json/member.h"

#include <stdbool.h>

enum { REQUEST_ID_SIZE = 16, REQUESTS_MAX = 500 };

/* "lib_" and eight hexadecimal digits. */
bool request_id_is_valid(const char *id);

/* Opens STATE/libs; `make` makes it if it is missing, and locks it until it is closed. Returns a
 * descriptor, or -1. Fails  ERR_NOT_FOUND  there is no request. */
int requests_open(const char *state, bool make, error *err);

/* Stores a new request, and sets its member `id`. Fails  ERR_LIMIT  there are too many. */
int request_add(int requests, struct json_object *request, error *err);

/* Gives *ret_request, which the caller puts. Fails  ERR_NOT_FOUND. */
int request_read(int requests, const char *id, struct json_object **ret_request, error *err);
int request_write(int requests, struct json_object *request, error *err);

/* Opens the folder of a request's archives. `fresh` empties it. */
int request_archives(int requests, const char *id, bool fresh, error *err);

/* Gives an array of all, the oldest first. */
int request_list(int requests, struct json_object **ret_requests, error *err);
