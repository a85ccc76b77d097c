/* client.h - the structs of glb_client and glb_outcome, and functions that the files share. */
#pragma once

#include "base/error.h"
#include "http1/client.h"
#include "supervisor/launch.h"
#include "json/member.h"

#include <glovebox.h>

#include <stdatomic.h>
#include <stdbool.h>

enum { RUN_ID_SIZE = 64 };

/* A private daemon has two connections from the start: one for the run, one to cancel it. For other
 * daemons, connections are made when they are needed. */
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
    char *text;        /* the JSON text */
    json_object *root; /* the same, parsed; never NULL */
};

/* Ends a public function: keeps the failure for glb_error_text(), and returns its code. */
int32_t report(const error *err);

/* Public structs come with their size in the caller's version. Copies the members that both
 * versions have; others are zero. Returns -1 if the caller has set a member that this version
 * lacks. */
int take_options(void *ours, size_t our_size, const void *theirs, size_t their_size);
int too_new(error *err); /* fails with the message for that */
void give_struct(void *theirs, size_t their_size, const void *ours, size_t our_size);

/* Gives a connection for the next request, anew if the last was closed; not to a private daemon. */
int client_connection(struct glb_client *client, struct http **ret_http, error *err);
int client_spare(struct glb_client *client, struct http **ret_http, error *err);

/* Fails with the reason why the peer closed the connection without an answer. Returns -1. */
int client_lost(struct glb_client *client, error *err);

/* Runs code or a cell: sends the request, passes the events of the answer to the callbacks of
 * `options`, and waits for the end. */
int client_run(struct glb_client *client, const struct http_request *request,
               const glb_run_options *options, struct glb_outcome **ret_outcome, error *err);

/* Passes an event of output, {"data":"text"} or {"data_base64":"…"}, to a callback, which may be
 * NULL. Gives *ret_wish, what the callback returned. */
struct output_event {
    int32_t stream;
    glb_on_output *on_output;
    void *context;
};
int output_event_tell(const struct output_event *told, const char *json, int32_t *ret_wish,
                      error *err);

/* Sends a request and reads its whole answer, which the caller frees. Fails if it is not 2xx. */
int client_ask(struct glb_client *client, const struct http_request *request, char **ret_text,
               error *err);

/* glb_cancel() is for one call: one that came too late must not cancel the next call. */
void client_forget_cancels(struct glb_client *client);

/* Copies the body of an answer to a descriptor. */
int client_fetch(struct glb_client *client, const char *path, int fd, error *err);

/* Can the id be part of a path without escapes? */
bool id_is_plain(const char *id);

/* Fails with the code and message of an answer that is not 2xx. Returns -1. */
int answer_failed(int status, const char *body, error *err);

/* Takes: `text`. Fails ERR_PROTOCOL if it is not a result. */
int outcome_parse(char *text, struct glb_outcome **ret_outcome, error *err);
