/* exec.c - `glovebox session exec` and `shell`: runs a program in a session, on this terminal. */
#include "cli/session/session.h"

#include "cli/commands.h"
#include "cli/tty/output_filter.h"
#include "cli/tty/screen_filter.h"

#include <json.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static glb_client *target;
static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
    if (number == SIGWINCH)
        return; /* the signal only ends the wait; then the size is read */
    ended_by = number;
    if (target)
        glb_cancel(target);
}

static void watch_signals(glb_client *client)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
    struct sigaction action = { .sa_handler = on_signal };
    target = client;
    for (size_t at = 0; at < sizeof numbers / sizeof *numbers; at++)
        (void) sigaction(numbers[at], &action, NULL);
    (void) signal(SIGPIPE, SIG_IGN);
}

/* Returns the exit status of a program, as a shell reports it. */
static int status_of(const char *json, char process[SESSION_NAME_SIZE])
{
    auto_json root = json_tokener_parse(json);
    json_object *code = json_member(root, "exit_code"), *number = json_member(root, "signal");
    int status = EXIT_OWN_FAILURE;
    if (code)
        status = json_object_get_int(code);
    else if (number)
        status = 128 + json_object_get_int(number);
    if (json_object_get_boolean(json_member(root, "timed_out")))
        status = EXIT_TIMEOUT;
    (void) snprintf(process, SESSION_NAME_SIZE, "%s", answer_text(root, "id"));
    return status;
}

struct showing {
    struct terminal out, err;
};

static int32_t show(void *context, int32_t stream, const void *data, size_t length)
{
    struct showing *showing = context;
    struct terminal *terminal = stream == GLB_STDERR ? &showing->err : &showing->out;
    terminal_write(terminal, data, length);
    return terminal->failed != 0;
}

/* A paused session does not answer, so the user is told about it. */
static const char *word_of_pause(const char *event)
{
    return strcmp(event, "paused") == 0    ? "the session is paused: its programs stand still"
           : strcmp(event, "resumed") == 0 ? "the session goes on"
                                           : NULL;
}

static int32_t say_pause(void *context, const char *event, const char *json)
{
    const char *word = word_of_pause(event);
    (void) context;
    (void) json;
    if (word)
        (void) complain("%s", word);
    return 0;
}

static void fill_in(const struct session_arguments *arguments, glb_process_options *options)
{
    options->process = arguments->process;
    if (!arguments->process)
        options->command = (const char *const *) (arguments->words + 1);
    options->environment = arguments->variables;
    options->folder = arguments->folder;
    options->takes_input = 1;
    options->input_fd = STDIN_FILENO;
}

int session_exec(struct session_arguments *arguments, error *err)
{
    char process[SESSION_NAME_SIZE] = "";
    struct showing showing;
    auto_text json = NULL;
    glb_process_options options = { .on_output = show, .on_event = say_pause, .context = &showing };
    if (arguments->count < 2 && !arguments->process)
        return fail(err, ERR_BAD_REQUEST,
                    "there is no command; write glovebox session exec ID -- COMMAND");
    fill_in(arguments, &options);
    options.takes_input = !isatty(STDIN_FILENO); /* a user who types wants a shell */
    terminal_init(&showing.out, STDOUT_FILENO);
    terminal_init(&showing.err, STDERR_FILENO);
    watch_signals(arguments->client);
    int32_t code =
        glb_session_exec(arguments->client, arguments->session, &options, sizeof options, &json);
    terminal_done(&showing.out);
    terminal_done(&showing.err);
    if (code == GLB_E_CANCELLED && ended_by)
        return 128 + ended_by;
    if (code != GLB_OK)
        return library_failed(code, err);
    int status = json ? status_of(json, process) : EXIT_OWN_FAILURE;
    return showing.out.failed || showing.err.failed ? 128 + SIGPIPE : status;
}

struct shell {
    struct screen screen;
    bool is_left;
};

static int32_t draw(void *context, int32_t stream, const void *data, size_t length)
{
    struct shell *shell = context;
    (void) stream;
    screen_draw(&shell->screen, data, length);
    return shell->screen.failed != 0;
}

static int32_t draw_pause(void *context, const char *event, const char *json)
{
    struct shell *shell = context;
    const char *word = word_of_pause(event);
    char line[128];
    (void) json;
    if (!word)
        return 0;
    int size = snprintf(line, sizeof line, "\r\n[%s]\r\n", word);
    screen_draw(&shell->screen, line, (size_t) size);
    return 0;
}

static int32_t typed(void *context, char *data, size_t *length)
{
    struct shell *shell = context;
    shell->is_left = screen_typed(&shell->screen, data, length);
    return shell->is_left;
}

static void ask_size(void *context, uint16_t *rows, uint16_t *columns)
{
    const struct shell *shell = context;
    screen_size(&shell->screen, rows, columns);
}

int session_shell(struct session_arguments *arguments, error *err)
{
    static char bash[] = "bash";
    char process[SESSION_NAME_SIZE] = "";
    auto_text json = NULL;
    struct shell shell = { 0 };
    glb_process_options options = { .has_terminal = 1,
                                    .on_size = ask_size,
                                    .on_input = typed,
                                    .on_output = draw,
                                    .on_event = draw_pause,
                                    .context = &shell };
    if (arguments->count < 2)
        arguments->words[1] = bash;
    fill_in(arguments, &options);
    if (arguments->variable_count < SESSION_LISTS_MAX)
        arguments->variables[arguments->variable_count++] = "TERM=xterm-256color";
    if (screen_open(&shell.screen, STDIN_FILENO, STDOUT_FILENO, err) < 0)
        return -1;
    watch_signals(arguments->client);
    int32_t code =
        glb_session_exec(arguments->client, arguments->session, &options, sizeof options, &json);
    screen_close(&shell.screen);
    if (code == GLB_E_CANCELLED && ended_by)
        return 128 + ended_by;
    if (code != GLB_OK)
        return library_failed(code, err);
    int status = json ? status_of(json, process) : EXIT_OWN_FAILURE;
    if (shell.is_left) {
        (void) fputc('\n', stderr); /* end the line of the last prompt */
        (void) complain("left; it runs on: glovebox session attach %s %s", arguments->session,
                        process);
        status = 0;
    }
    return status;
}
