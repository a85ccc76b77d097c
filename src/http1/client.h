/* client.h - as much of HTTP/1.1 as a client of gloveboxd needs, over a socket that is connected
 * already: one request at a time, bodies with a length, chunked bodies, and server-sent events in
 * them. */
#pragma once

#include "base/clock.h"
#include "base/error.h"
#include "http1/chunked.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sink;

enum { HTTP_BUFFER = 32768, HTTP_EVENT_NAME = 32 };

struct http {
    int fd;
    int interrupt; /* an eventfd that ends waiting when it becomes readable; -1 for none */
    struct http_watch *watch; /* a second descriptor to watch while waiting; NULL: none */
    deadline until;           /* when waiting ends; set by the caller */
    const char *key;          /* sent as Authorization; NULL: none. Borrowed, set by the caller */
    size_t start, end;

    int status;  /* of the answer */
    bool events; /* the answer is text/event-stream */
    bool chunked;
    struct http_chunks chunks;
    bool until_close; /* the body ends with the connection */
    bool keep;        /* the connection can be used again */
    bool body_ended;
    uint64_t left; /* of a body that has a length */
    char buffer[HTTP_BUFFER];
};

/* A descriptor that is watched while an answer is awaited: `ready` is called when fd is readable or
 * at its end, `turn` at every wake, at least twice a second. If one returns -1, the wait fails. */
struct http_watch {
    int fd; /* -1: only the turns */
    int (*ready)(void *context, error *err);
    int (*turn)(void *context, error *err);
    void *context;
};

/* Results of the functions that wait, besides 0 and -1. */
enum { HTTP_INTERRUPTED = 1, HTTP_CLOSED = 2 };

/* Takes fd. */
void http_init(struct http *http, int fd, int interrupt);
void http_done(struct http *http);

struct http_request {
    const char *method, *path;
    const char *accept;
    const char *key;                                         /* NULL: no key is sent */
    void (*write_body)(struct sink *sink, const void *what); /* called twice; NULL: no body */
    const void *what;
    bool sends_file; /* the body is the rest of `file` */
    int file;
};

/* Writes a request. Fails  ERR_SYSTEM  the peer has stopped reading; it may have sent an answer. */
int http_send(struct http *http, const struct http_request *request, error *err);

/* Waits for the head of the answer.
 * Returns  HTTP_INTERRUPTED, HTTP_CLOSED (the connection ended before an answer)
 * Fails    ERR_PROTOCOL, ERR_TIMEOUT (`until` has passed) */
int http_receive(struct http *http, error *err);

/* Reads some of the body. Gives *ret_size bytes, 0 at its end. Fails as http_receive. */
int http_read(struct http *http, void *data, size_t size, size_t *ret_size, error *err);

/* Reads the rest of the body, at most `most` bytes.
 * Gives  *ret_body, ended by NUL, which the caller frees. Fails  ERR_TOO_LARGE as well. */
int http_read_all(struct http *http, size_t max, char **ret_body, size_t *ret_size, error *err);

/* Bytes that grow at their end, with room for one more (a NUL). */
struct growing {
    char *data;
    size_t size, room;
};

/* Reads server-sent events out of a body and calls back at the end of each. Zero-fill it and set
 * the first two members. `data` ends with NUL and is valid until the callback returns. */
struct event_reader {
    int (*came)(void *context, const char *name, const char *data, error *err);
    void *context;
    char name[HTTP_EVENT_NAME];
    struct growing line, data;
};

int event_reader_feed(struct event_reader *reader, const char *bytes, size_t size, error *err);
void event_reader_done(struct event_reader *reader);
