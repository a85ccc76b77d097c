/* client.c - connects to gloveboxd, or starts a private one. */
#include "client/client.h"

#include "base/cleanup.h"
#include "client/connect.h"
#include "model/errors.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

_Static_assert((int) GLB_E_SYSTEM == (int) ERR_SYSTEM &&
                   (int) GLB_E_INTERNAL == (int) ERR_INTERNAL &&
                   (int) GLB_E_TOO_LARGE == (int) ERR_TOO_LARGE &&
                   (int) GLB_E_UNAVAILABLE == (int) ERR_UNAVAILABLE &&
                   (int) GLB_E_QUOTA == (int) ERR_QUOTA &&
                   (int) GLB_E_NO_PROGRAM == (int) ERR_NO_PROGRAM &&
                   (int) GLB_E_NOT_EXECUTABLE == (int) ERR_NOT_EXECUTABLE &&
                   (int) GLB_E_CANCELLED == (int) ERR_INTERNAL + 1,
               "public numbers are those of base/error.h");

enum { END_MS = 15000 }; /* how long a private daemon may take to end */

static _Thread_local char last_error[sizeof((error *) NULL)->text];

int32_t report(const error *err)
{
    (void) snprintf(last_error, sizeof last_error, "%s", err->text);
    bool is_public = (err->code > 0 && err->code <= GLB_E_CANCELLED) ||
                     (err->code >= GLB_E_QUOTA && err->code <= GLB_E_NOT_EXECUTABLE);
    return is_public ? err->code : GLB_E_INTERNAL;
}

const char *glb_error_text(void)
{
    return last_error;
}

const char *glb_version(void)
{
    return GLOVEBOX_VERSION;
}

int take_options(void *ours, size_t our_size, const void *theirs, size_t their_size)
{
    memset(ours, 0, our_size);
    if (!theirs)
        return 0;
    memcpy(ours, theirs, their_size < our_size ? their_size : our_size);
    for (size_t at = our_size; at < their_size; at++)
        if (((const unsigned char *) theirs)[at] != 0)
            return -1;
    return 0;
}

int too_new(error *err)
{
    return fail(err, ERR_BAD_REQUEST, "an option is newer than this libglovebox (%s)",
                GLOVEBOX_VERSION);
}

void give_struct(void *theirs, size_t their_size, const void *ours, size_t our_size)
{
    memset(theirs, 0, their_size);
    memcpy(theirs, ours, their_size < our_size ? their_size : our_size);
}

static int connect_private(struct glb_client *client, const glb_connect_options *options,
                           error *err)
{
    int ours[2], theirs[2];
    for (int index = 0; index < 2; index++) {
        int pair[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
            (void) fail_os(err, "make a socket to gloveboxd");
            while (index-- > 0)
                (void) close(theirs[index]);
            return -1;
        }
        theirs[index] = pair[1];
        ours[index] = pair[0];
        http_init(index == 0 ? &client->main : &client->spare, ours[index], client->interrupt);
    }
    struct launch_plan plan = {
        .state = options->state,
        .private = true,
        .log = options->log_fd,
        .first_template = options->template_name ? options->template_name : "python",
        .connection_count = 2,
        .connections = { theirs[0], theirs[1] },
    };
    int result = launch_start(&plan, &client->launch, err);
    (void) close(theirs[0]);
    (void) close(theirs[1]);
    client->private = result == 0;
    return result;
}

/* Uses a running daemon, or else starts a private one, if that is allowed. */
static int connect_any(struct glb_client *client, const glb_connect_options *options, error *err)
{
    int fd = -1;
    if (options->how != GLB_CONNECT_PRIVATE) {
        auto_text path = NULL;
        const char *key;
        if (key_of_caller(options->key, &key, err) < 0 ||
            (key && format_text(&client->key, err, "%s", key) < 0))
            return -1;
        int found = options->socket ? format_text(&path, err, "%s", options->socket)
                                    : path_of_socket(options->state, &path, err);
        if (found < 0)
            return -1;
        /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
        const char *chosen = getenv("GLOVEBOX_SOCKET");
        bool named = options->socket || (chosen && *chosen);
        bool must = options->how == GLB_CONNECT_SOCKET || named;
        if (dial(path, &fd, err) == 0) {
            http_init(&client->main, fd, client->interrupt);
            client->socket = take_text(&path);
            client->main.key = client->key;
            return 0;
        }
        if (must)
            return -1;
    }
    return connect_private(client, options, err);
}

int32_t glb_connect(const glb_connect_options *options, size_t options_size,
                    glb_client **ret_client)
{
    error err = { 0 };
    glb_connect_options ours;
    if (take_options(&ours, sizeof ours, options, options_size) < 0) {
        (void) too_new(&err);
        return report(&err);
    }
    struct glb_client *client = calloc(1, sizeof *client);
    if (!client) {
        (void) fail(&err, ERR_INTERNAL, "out of memory");
        return report(&err);
    }
    client->main.fd = client->spare.fd = -1;
    client->launch = launch_none();
    client->interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int result =
        client->interrupt < 0 ? fail_os(&err, "make an eventfd") : connect_any(client, &ours, &err);
    if (result < 0) {
        glb_close(client);
        return report(&err);
    }
    *ret_client = client;
    return GLB_OK;
}

void glb_close(glb_client *client)
{
    if (!client)
        return;
    http_done(&client->main);
    http_done(&client->spare);
    if (client->private)
        launch_end(&client->launch, deadline_in(END_MS));
    close_fd(&client->interrupt);
    free(client->socket);
    free(client->key);
    free(client);
}

/* Async-signal-safe. */
void glb_cancel(glb_client *client)
{
    int before = errno;
    uint64_t one = 1;
    atomic_fetch_add(&client->cancels, 1);
    (void) !write(client->interrupt, &one, sizeof one);
    errno = before;
}

/* Ends the connection, and makes a new one to the daemon. */
static int redial(struct glb_client *client, struct http *http, int interrupt, error *err)
{
    int fd = -1;
    http_done(http);
    if (dial(client->socket, &fd, err) < 0)
        return -1;
    http_init(http, fd, interrupt);
    http->key = client->key;
    return 0;
}

int client_connection(struct glb_client *client, struct http **ret_http, error *err)
{
    struct http *http = &client->main;
    if (http->fd >= 0 && http->keep && http->body_ended) {
        *ret_http = http;
        return 0;
    }
    if (client->private)
        return client_spare(client, ret_http, err);
    *ret_http = http;
    return redial(client, http, client->interrupt, err);
}

int client_spare(struct glb_client *client, struct http **ret_http, error *err)
{
    struct http *http = &client->spare;
    if (http->fd < 0 || !http->keep) {
        if (client->private)
            return fail(err, ERR_INTERNAL, "the private daemon has closed its connections");
        if (redial(client, http, -1, err) < 0)
            return -1;
    }
    *ret_http = http;
    return 0;
}

int client_lost(struct glb_client *client, error *err)
{
    if (!client->private)
        return fail(err, ERR_UNAVAILABLE,
                    "gloveboxd at %s ended the connection without an answer; see its log",
                    client->socket);
    /* The logs are complete only when both programs have ended. */
    http_done(&client->main);
    http_done(&client->spare);
    int log = client->launch.log < 0 ? -1 : fcntl(client->launch.log, F_DUPFD_CLOEXEC, 3);
    launch_end(&client->launch, deadline_in(END_MS));
    client->launch.log = log;
    return launch_cause(&client->launch, err);
}

int answer_failed(int status, const char *body, error *err)
{
    auto_json root = json_tokener_parse(body);
    json_object *inner = json_member(root, "error");
    const char *code = json_object_get_string(json_member(inner, "code"));
    const char *message = json_object_get_string(json_member(inner, "message"));
    if (!message)
        return fail(err, ERR_PROTOCOL, "gloveboxd answered with status %d and no reason", status);
    for (int each = ERR_NONE + 1; code && each < ERR_COUNT; each++)
        if (strcmp(error_row_of(each)->json_code, code) == 0)
            return fail(err, (enum error_code) each, "%s", message);
    return fail(err, ERR_INTERNAL, "%s", message);
}
