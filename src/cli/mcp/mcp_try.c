/* mcp_try.c - `glovebox mcp try`: starts `glovebox mcp` as a host does, and calls each tool once.
 */
#include "cli/mcp/mcp_install.h"

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/daemon_request.h"
#include "json/reader.h"

#include <errno.h>
#include <poll.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum { ANSWER_MS = 120000, SHOWN_MAX = 72, WORDS_MAX = 32 };

struct trial {
    const char *tool;
    const char *arguments; /* %s: the id that `takes` says */
    const char *expected;  /* the text must begin so */
    enum { TAKES_NOTHING, TAKES_SESSION, TAKES_RUN } takes;
    bool is_refused; /* it must fail: nothing is left in the user's folder */
};

static const struct trial trials[] = {
    /* clang-format off */
    { "run_code",       "{\"code\":\"print(6 * 7)\"}", "42" },
    { "execute_python", "{\"code\":\"print(6 * 7)\"}", "42" },
    { "run_command",    "{\"command\":\"echo hello\"}", "hello" },
    { "session_open",   "{\"idle_seconds\":60}", "" },
    { "file_write",     "{\"session_id\":\"%s\",\"path\":\"try.txt\",\"content\":\"hello\"}", "5 bytes", TAKES_SESSION },
    { "file_read",      "{\"session_id\":\"%s\",\"path\":\"try.txt\"}", "hello", TAKES_SESSION },
    { "file_list",      "{\"session_id\":\"%s\"}", "try.txt", TAKES_SESSION },
    { "file_import",    "{\"session_id\":\"%s\",\"file\":\"../try.txt\"}", "policy: ", TAKES_SESSION, true },
    { "file_export",    "{\"session_id\":\"%s\",\"path\":\"try.txt\",\"file\":\"../try.txt\"}", "policy: ", TAKES_SESSION, true },
    { "run_status",     "{\"run_id\":\"%s\"}", "42", TAKES_RUN },
    { "run_cancel",     "{\"run_id\":\"%s\"}", "42", TAKES_RUN },
    { "policy_explain", "{}", "" },
    { "session_close",  "{\"session_id\":\"%s\"}", "", TAKES_SESSION },
    /* clang-format on */
};

struct host {
    int fd; /* stdin and stdout of `glovebox mcp` */
    pid_t pid;
    struct bytes in;
    unsigned asked;
    char ids[3][64]; /* index: `takes` of a trial */
    unsigned failed;
};

static int start(struct host *host, int argc, char **argv, error *err)
{
    int ends[2];
    const char *words[WORDS_MAX + 1] = { "glovebox", "mcp" };
    posix_spawn_file_actions_t actions;
    if (argc + 1 > WORDS_MAX)
        return fail(err, ERR_BAD_REQUEST, "mcp try takes at most %d words", WORDS_MAX);
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0)
        return fail_os(err, "make a pair of sockets");
    (void) posix_spawn_file_actions_init(&actions);
    (void) posix_spawn_file_actions_adddup2(&actions, ends[1], STDIN_FILENO);
    (void) posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int number = posix_spawn(&host->pid, "/proc/self/exe", &actions, NULL,
                             (char *const *) (uintptr_t) words, environ);
    (void) posix_spawn_file_actions_destroy(&actions);
    close_fd(&ends[1]);
    host->fd = ends[0];
    errno = number;
    return number ? fail_os(err, "start glovebox mcp") : 0;
}

/* Only one message is under way at a time, so each line is its answer or a notification before
 * it. */
static int read_answer(struct host *host, json_object **ret_answer, error *err)
{
    for (;;) {
        const char *end = host->in.size ? memchr(host->in.data, '\n', host->in.size) : NULL;
        struct pollfd ready = { host->fd, POLLIN, 0 };
        if (end) {
            size_t size = (size_t) (end - host->in.data) + 1;
            int result = json_read(host->in.data, size, ret_answer, err);
            bytes_drop(&host->in, size);
            if (result < 0 || json_member(*ret_answer, "id"))
                return result;
            (void) json_object_put(*ret_answer);
            continue;
        }
        char *room = bytes_reserve(&host->in, BUFSIZ);
        ssize_t got = room && poll(&ready, 1, ANSWER_MS) > 0 ? read(host->fd, room, BUFSIZ) : -1;
        if (got <= 0)
            return fail(err, ERR_UNAVAILABLE, "glovebox mcp has ended, or gives no answer");
        host->in.size += (size_t) got;
    }
}

/* Sends a request and returns the answer, NULL if there is none. */
static json_object *ask(struct host *host, const char *method, const char *params, error *err)
{
    auto_bytes line = { 0 };
    json_object *answer = NULL;
    bytes_print(&line, "{\"jsonrpc\":\"2.0\",\"id\":%u,\"method\":\"%s\",\"params\":%s}\n",
                ++host->asked, method, params);
    if (send(host->fd, bytes_text(&line), line.size, MSG_NOSIGNAL) != (ssize_t) line.size) {
        (void) fail(err, ERR_UNAVAILABLE, "glovebox mcp has ended");
        return NULL;
    }
    return read_answer(host, &answer, err) < 0 ? NULL : answer;
}

/* Prints the first line of the text, without control bytes, shortened to whole words. */
static void report(struct host *host, bool is_good, const char *tool, const char *text)
{
    size_t length = strcspn(text, "\n");
    size_t shown = length > SHOWN_MAX ? SHOWN_MAX : length;
    while (shown < length && shown > SHOWN_MAX / 2 && text[shown] != ' ')
        shown--;
    (void) printf("%-6s %-15s ", is_good ? "ok" : "FAILED", tool);
    for (size_t i = 0; i < shown; i++)
        (void) putchar((unsigned char) text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
    (void) puts(shown < length ? " …" : "");
    host->failed += !is_good;
}

static void keep_ids(struct host *host, const struct trial *trial, json_object *result)
{
    const char *id = answer_text(json_member(result, "structuredContent"), "id");
    bool is_session = strcmp(trial->tool, "session_open") == 0;
    if (is_session || strcmp(trial->tool, "run_code") == 0)
        (void) snprintf(host->ids[is_session ? TAKES_SESSION : TAKES_RUN], sizeof host->ids[0],
                        "%s", id);
}

static int try_one(struct host *host, const struct trial *trial, error *err)
{
    auto_bytes params = { 0 };
    bytes_print(&params, "{\"name\":\"%s\",\"arguments\":", trial->tool);
    const char *id = strstr(trial->arguments, "%s");
    bytes_add(&params, trial->arguments,
              id ? (size_t) (id - trial->arguments) : strlen(trial->arguments));
    if (id)
        bytes_print(&params, "%s%s", host->ids[trial->takes], id + 2);
    bytes_add_text(&params, "}");
    auto_json answer = ask(host, "tools/call", bytes_text(&params), err);
    if (!answer)
        return -1;
    json_object *result = json_member(answer, "result");
    const char *text =
        result ? answer_text(json_object_array_get_idx(json_member(result, "content"), 0), "text")
               : answer_text(json_member(answer, "error"), "message");
    bool is_error = !result || json_object_get_boolean(json_member(result, "isError"));
    bool is_good = is_error == trial->is_refused &&
                   strncmp(text, trial->expected, strlen(trial->expected)) == 0;
    report(host, is_good, trial->tool,
           is_good && trial->is_refused ? "refuses a path outside of DIR, as it must" : text);
    keep_ids(host, trial, result);
    return 0;
}

static int try_all(struct host *host, json_object *tools, error *err)
{
    bool is_listed[COUNT_OF(trials)] = { false };
    for (size_t i = 0; i < json_object_array_length(tools); i++) {
        const char *name = answer_text(json_object_array_get_idx(tools, i), "name");
        size_t at = 0;
        while (at < COUNT_OF(trials) && strcmp(trials[at].tool, name) != 0)
            at++;
        if (at < COUNT_OF(trials))
            is_listed[at] = true;
        else
            report(host, false, name, "this glovebox does not know what it does");
    }
    for_each(trial, trials)
        if (!is_listed[trial - trials])
            (void) printf("%-6s %-15s %s\n", "-", trial->tool,
                          trial->is_refused ? "offered with --files DIR:rw" : "not offered here");
        else if (try_one(host, trial, err) < 0)
            return -1;
    return 0;
}

static int try(struct host *host, error *err)
{
    static const char hello[] =
        "{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":"
        "{\"name\":\"glovebox mcp try\",\"version\":\"" GLOVEBOX_VERSION "\"}}";
    auto_json began = ask(host, "initialize", hello, err);
    auto_json list = began ? ask(host, "tools/list", "{}", err) : NULL;
    json_object *tools = json_member(json_member(list, "result"), "tools");
    json_object *server = json_member(json_member(began, "result"), "serverInfo");
    int result = -1;
    if (list && !json_object_is_type(tools, json_type_array)) {
        (void) fail(err, ERR_PROTOCOL, "%.160s",
                    answer_text(json_member(list, "error"), "message"));
    } else if (list) {
        (void) printf("%s %s, revision %s, %zu tools\n", answer_text(server, "name"),
                      answer_text(server, "version"),
                      answer_text(json_member(began, "result"), "protocolVersion"),
                      json_object_array_length(tools));
        result = try_all(host, tools, err);
    }
    return result;
}

int mcp_try(int argc, char **argv)
{
    static struct host host = { .fd = -1 };
    error err;
    if (start(&host, argc, argv, &err) < 0)
        return complain_of(&err);
    int result = try(&host, &err);
    close_fd(&host.fd);
    int status = 0;
    (void) waitpid(host.pid, &status, 0);
    bytes_done(&host.in);
    if (result < 0 && WIFEXITED(status) && WEXITSTATUS(status) != 0)
        return WEXITSTATUS(status); /* it has printed why */
    return result < 0 ? complain_of(&err) : host.failed > 0;
}
