/* mcp_bridge.h - `glovebox mcp`: messages of the Model Context Protocol between stdin and stdout,
 * one a line, and /mcp of a daemon, where each is a POST of its own. */
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

/* One message on its way to the daemon, and what comes back. */
struct post {
    int fd;
    struct bytes request;
    size_t sent;
    struct bytes in; /* of the answer, not taken apart yet */
    struct port_answer answer;
    bool has_head, has_ended, is_events, is_over;
    struct bytes body;           /* a JSON answer, or the line of an event that is coming in */
    struct json_object *id;      /* of the message; NULL: a notification, or it cannot be read */
    bool is_handshake;           /* its answer names the session */
    struct json_object *exports; /* arguments of a call of file_export; NULL: it is none */
    struct post *next;
};

struct bridge {
    const char *place; /* of a daemon; NULL: `address` of a private one */
    struct sockaddr_storage address;
    socklen_t address_size;
    const char *key;         /* NULL: none */
    char id[BRIDGE_ID_SIZE]; /* of this process */
    char session[64];        /* Mcp-Session-Id of the handshake; "": none */
    struct host_files files;
    int stream;        /* the connection that says that this process lives */
    struct bytes line; /* that is coming in from stdin */
    bool line_is_lost; /* it is too long: the rest of it is thrown away */
    struct bytes out;  /* to stdout */
    size_t written;    /* of it */
    struct post *posts;
    unsigned post_count;
    bool is_ending;
};

/* Until stdin ends, or stdout cannot be written. */
int bridge_run(struct bridge *bridge, error *err);

int bridge_dial(const struct bridge *bridge, int *ret_fd, error *err);
/* Takes one line; what cannot be sent is answered with a failure. */
void bridge_send(struct bridge *bridge, const char *line, size_t size);
/* The descriptor is ready. */
void post_write(struct post *post);
void post_read(struct bridge *bridge, struct post *post);
void posts_clean(struct bridge *bridge);
void bridge_end_posts(struct bridge *bridge);
/* A message for the host. */
void bridge_tell(struct bridge *bridge, const char *json, size_t size);
