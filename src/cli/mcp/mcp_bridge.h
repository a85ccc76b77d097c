/* mcp_bridge.h - `glovebox mcp`: passes messages of the Model Context Protocol between stdin and
 * stdout, one a line, and /mcp of a daemon, where each is an HTTP POST. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "cli/mcp/host_files.h"
#include "http1/response_reader.h"

#include <json-c/json.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

enum { BRIDGE_POSTS_MAX = 64, BRIDGE_LINE_MAX = 64 << 20, BRIDGE_ID_SIZE = 33 };

/* One message that is sent to the daemon, and its answer. */
struct post {
    int fd;
    struct bytes request;
    size_t sent;
    struct bytes in; /* of the answer, not parsed yet */
    struct port_answer answer;
    bool has_head, has_ended, is_events, is_over;
    struct bytes body;           /* a JSON answer, or the incomplete line of an event */
    struct json_object *id;      /* of the message; NULL: a notification, or not readable */
    bool is_handshake;           /* the answer names the session */
    struct json_object *exports; /* arguments, if it calls file_export; else NULL */
    struct post *next;
};

struct bridge {
    const char *place; /* address of a daemon; NULL: private, see `address` */
    struct sockaddr_storage address;
    socklen_t address_size;
    const char *key;         /* NULL: none */
    char id[BRIDGE_ID_SIZE]; /* identifies this process */
    char session[64];        /* Mcp-Session-Id from the handshake; "": none */
    struct host_files files;
    int stream;        /* connection that shows that this process lives */
    struct bytes line; /* incomplete line from stdin */
    bool line_is_lost; /* it was too long: its rest is dropped */
    struct bytes out;  /* to stdout */
    size_t written;    /* bytes of `out` that are written */
    struct post *posts;
    unsigned post_count;
    bool is_ending;
};

/* Runs until stdin ends or stdout cannot be written. */
int bridge_run(struct bridge *bridge, error *err);

int bridge_dial(const struct bridge *bridge, int *ret_fd, error *err);
/* Sends one line; if it cannot be sent, the host gets a failure as the answer. */
void bridge_send(struct bridge *bridge, const char *line, size_t size);
/* Called when the descriptor is ready. */
void post_write(struct post *post);
void post_read(struct bridge *bridge, struct post *post);
void posts_clean(struct bridge *bridge);
void bridge_end_posts(struct bridge *bridge);
/* Queues a message for the host. */
void bridge_tell(struct bridge *bridge, const char *json, size_t size);
