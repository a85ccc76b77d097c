/* session.h - URL paths of sessions, and requests for them. */
#pragma once

#include "base/error.h"

#include "http1/client.h"

#include <glovebox.h>

#include <stddef.h>

/* Writes "/v1/sessions/ID" and `rest`. Fails ERR_BAD_REQUEST for an invalid id. */
int session_path(char *path, size_t size, const char *session, const char *rest, error *err);

/* A request with a body, whose answer is JSON. */
static inline struct http_request
json_post(const char *path, void (*write)(struct sink *sink, const void *what), const void *what)
{
    return (struct http_request){ "POST", path, "application/json", NULL, write, what, false, -1 };
}

/* Sends a request for a session, without a body. */
int32_t session_ask(struct glb_client *client, const char *method, const char *session,
                    const char *rest, char **ret_json);
