/* client.h - what stands behind glb_client and glb_outcome. */
#pragma once

#include "base/error.h"
#include "http1/client.h"
#include "supervisor/launch.h"

#include <glovebox.h>

#include <json-c/json.h>
#include <stdatomic.h>
#include <stdbool.h>

enum { RUN_ID_SIZE = 64 };

/* A private daemon has two connections from the start: one for the run, one to cancel it. Over a
 * socket, connections are made when they are needed. */
struct glb_client {
    bool private;
    struct launch launch;
    char *socket;       /* path or HOST:PORT, if not private */
    char *key;          /* sent with each request; NULL: none */
    struct http main;   /* fd -1 while closed */
    struct http spare;  /* the same */
    int interrupt;      /* eventfd, written by glb_cancel() */
    atomic_int cancels; /* how often that was */
};

struct glb_outcome {
    char *text;        /* the JSON as it came */
    json_object *root; /* the same, parsed; never NULL */
};

/* Ends a public function: keeps why it failed for glb_error_text(). Gives what to return. */
int32_t report(const error *err);

/* Public structs come with the size that the caller knows. Copies what both sides know; the rest is
 * zero. Returns -1 if the caller's is larger and has something set that we do not know. */
int take_options(void *ours, size_t our_size, const void *theirs, size_t their_size);
int too_new(error *err); /* what to say then */
void give_struct(void *theirs, size_t their_size, const void *ours, size_t our_size);

/* A connection for the next request; for a socket a new one when the last was not kept. */
int client_connection(struct glb_client *client, struct http **ret_http, error *err);
int client_spare(struct glb_client *client, struct http **ret_http, error *err);

/* Why the peer closed the connection without an answer. Returns -1. */
int client_lost(struct glb_client *client, error *err);

/* Runs code or a cell: sends the request, which answers with events, tells them to the callbacks of
 * `options`, and waits for the end. */
int client_run(struct glb_client *client, const struct http_request *request,
               const glb_run_options *options, struct glb_outcome **ret_outcome, error *err);

/* Tells an event of output, {"data":"text"} or {"data_base64":"…"}, to a callback, which may be
 * NULL. Gives *ret_wish, what the callback returned. */
struct output_event {
    int32_t stream;
    glb_on_output *on_output;
    void *context;
};
int output_event_tell(const struct output_event *told, const char *json, int32_t *ret_wish,
                      error *err);

/* Sends a request and reads its whole answer, which the caller frees. Fails if it is no 2xx. */
int client_ask(struct glb_client *client, const struct http_request *request, char **ret_text,
               error *err);

/* A wish to cancel is for one call: what came too late is not for the next one. */
void client_forget_cancels(struct glb_client *client);

/* Copies the body of an answer to a descriptor. */
int client_fetch(struct glb_client *client, const char *path, int fd, error *err);

/* May it stand in a path as it is? */
bool id_is_plain(const char *id);

/* Turns an answer that is no 2xx into a failure with its code and message. Returns -1. */
int answer_failed(int status, const char *body, error *err);

/* Takes the text. Fails ERR_PROTOCOL if it is not a result. */
int outcome_parse(char *text, struct glb_outcome **ret_outcome, error *err);
