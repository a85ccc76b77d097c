/* daemon_request.c - see daemon_request.h: over the connection of the library. */
#include "cli/daemon_request.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/sink.h"
#include "cli/commands.h"
#include "cli/tty/output_filter.h"
#include "client/client.h"
#include "client/connect.h"
#include "supervisor/install_paths.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MS = 330000, ANSWER_MAX = 16 << 20 };

static void write_body(struct sink *sink, const void *what)
{
    json_object *body = (json_object *) (uintptr_t) what;
    sink_text(sink, json_object_to_json_string_ext(body, JSON_C_TO_STRING_PLAIN));
}

int ask_daemon(glb_client *client, const struct ask *ask, json_object **ret_answer, error *err)
{
    struct http *http = NULL;
    struct http_request request = { .method = ask->method,
                                    .path = ask->path,
                                    .accept = "application/json",
                                    .key = ask->key,
                                    .write_body = ask->body ? write_body : NULL,
                                    .what = ask->body };
    size_t size = 0;
    for (const char *at = ask->key; at && *at; at++)
        if (*at <= ' ' || *at > '~')
            return fail(err, ERR_BAD_REQUEST, "the key is none; write it as glb_…");
    if (client_connection(client, &http, err) < 0)
        return -1;
    http->until = deadline_in(ANSWER_MS);
    auto_text body = NULL;
    int result = http_send(http, &request, err);
    if (result == 0)
        result = http_receive(http, err);
    if (result == 0)
        result = http_read_all(http, ANSWER_MAX, &body, &size, err);
    if (result == HTTP_INTERRUPTED)
        return fail(err, (enum error_code) GLB_E_CANCELLED, "cancelled");
    if (result != 0)
        return result < 0 ? -1 : client_lost(client, err);
    if (http->status != 200)
        return answer_failed(http->status, body, err);
    *ret_answer = json_tokener_parse(body);
    return *ret_answer ? 0 : fail(err, ERR_PROTOCOL, "gloveboxd sent an answer that is none");
}

int ask_open(const struct question *question, struct http *http, error *err)
{
    const struct http_request request = { .method = "GET",
                                          .path = question->path,
                                          .accept = question->accept };
    auto_text place = NULL;
    auto_text body = NULL;
    const char *key;
    size_t size;
    int fd = -1;
    int found = question->place ? format_text(&place, err, "%s", question->place)
                                : path_of_socket(NULL, &place, err);
    if (found < 0 || key_of_caller(question->key, &key, err) < 0 || dial(place, &fd, err) < 0)
        return -1;
    http_init(http, fd, -1);
    http->key = key;
    http->until = deadline_in(question->max_ms);
    int result = http_send(http, &request, err);
    if (result == 0)
        result = http_receive(http, err);
    if (result == 0 && http->status == 200)
        return 0;
    if (result == 0)
        result = http_read_all(http, ANSWER_MAX, &body, &size, err);
    int status = http->status;
    http_done(http);
    if (result != 0)
        return result < 0 ? -1 : fail(err, ERR_UNAVAILABLE, "the daemon has gone");
    return answer_failed(status, body, err);
}

int ask_value(const struct question *question, char **ret_text, json_object **ret_value, error *err)
{
    static struct http http;
    auto_text text = NULL;
    size_t size;
    if (ask_open(question, &http, err) < 0)
        return -1;
    int result = http_read_all(&http, ANSWER_MAX, &text, &size, err);
    http_done(&http);
    if (result != 0)
        return result < 0 ? -1 : fail(err, ERR_UNAVAILABLE, "the daemon has gone");
    *ret_value = json_tokener_parse(text);
    if (!*ret_value)
        return fail(err, ERR_PROTOCOL, "gloveboxd sent an answer that is none");
    *ret_text = take_text(&text);
    return 0;
}

const char *answer_text(json_object *object, const char *name)
{
    json_object *value = json_member(object, name);
    return value ? json_object_get_string(value) : "";
}

json_object *list_of(json_object *object, const char *key)
{
    json_object *value = json_member(object, key);
    return json_object_is_type(value, json_type_array) ? value : NULL;
}

/* Filters text of others for a terminal. JSON escapes ESC, but not U+009B. */
void print_filtered(const char *text)
{
    struct terminal terminal;
    (void) fflush(stdout);
    terminal_init(&terminal, STDOUT_FILENO);
    terminal_write(&terminal, text, strlen(text));
    terminal_write(&terminal, "\n", 1);
    terminal_done(&terminal);
}

void print_json_line(json_object *value)
{
    print_filtered(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                             JSON_C_TO_STRING_NOSLASHESCAPE));
}

static void print_plain(json_object *value, bool is_inner);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as json-c's tokener lets it be */
static void print_part(const char *name, json_object *value, bool is_first)
{
    (void) fputs(is_first ? "" : ", ", stdout);
    print_harmless(stdout, name);
    (void) fputs(*name ? " " : "", stdout);
    print_plain(value, true);
}

/* {"a":1,"b":[2,3]} is "a 1, b (2, 3)". Names and texts may come from a sandbox. */
/* NOLINTNEXTLINE(misc-no-recursion): as print_part() */
static void print_plain(json_object *value, bool is_inner)
{
    bool is_object = json_object_is_type(value, json_type_object), is_first = true;
    if (!is_object && !json_object_is_type(value, json_type_array)) {
        print_harmless(stdout, value ? json_object_get_string(value) : "-");
        return;
    }
    if (strlen(json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN)) == 2) { /* {}, [] */
        (void) fputs("-", stdout);
        return;
    }
    (void) fputs(is_inner ? "(" : "", stdout);
    if (is_object) {
        json_object_object_foreach(value, name, member)
        {
            print_part(name, member, is_first);
            is_first = false;
        }
    }
    for (size_t i = 0; !is_object && i < json_object_array_length(value); i++)
        print_part("", json_object_array_get_idx(value, i), i == 0);
    (void) fputs(is_inner ? ")" : "", stdout);
}

void print_member(const char *title, json_object *value)
{
    (void) printf("%-12s ", title);
    print_plain(value, false);
    (void) putchar('\n');
}
