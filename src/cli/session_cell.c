/* session_cell.c - `glovebox session run`: one cell, and what it shows. */
#include "cli/session.h"

#include "cli/commands.h"
#include "cli/inputs.h"
#include "cli/terminal.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct showing {
    struct terminal out, err;
};

static int32_t show_output(void *context, int32_t stream, const void *data, size_t length)
{
    struct showing *showing = context;
    struct terminal *terminal = stream == GLB_STDERR ? &showing->err : &showing->out;
    terminal_write(terminal, data, length);
    return terminal->failed != 0;
}

static void show_line(struct terminal *terminal, const char *text)
{
    terminal_write(terminal, text, strlen(text));
    terminal_write(terminal, "\n", 1);
}

/* A value as text; what has none, such as an image, is named. */
static int32_t show_event(void *context, const char *name, const char *json)
{
    struct showing *showing = context;
    if (strcmp(name, "result") != 0 && strcmp(name, "error") != 0)
        return 0;
    json_object *event = json_tokener_parse(json);
    json_object *data = NULL;
    if (*name == 'e') {
        show_line(&showing->err, text_of(event, "traceback"));
    } else if (json_object_object_get_ex(event, "data", &data) && data) {
        json_object *text = NULL;
        if (json_object_object_get_ex(data, "text/plain", &text) && text)
            show_line(&showing->out, json_object_get_string(text));
        json_object_object_foreach(data, mime, value)
        {
            char line[160];
            (void) value;
            if (strncmp(mime, "image/", 6) != 0)
                continue;
            (void) snprintf(line, sizeof line, "[%.60s; --json has it]", mime);
            show_line(&showing->out, line);
        }
    }
    (void) json_object_put(event);
    return 0;
}

static glb_client *interrupted;

static void interrupt(int number)
{
    (void) number;
    if (interrupted)
        glb_cancel(interrupted);
}

static int read_cell(const struct session_arguments *arguments, char **ret_code, size_t *ret_size,
                     error *err)
{
    if (arguments->code) {
        *ret_code = strdup(arguments->code);
        *ret_size = strlen(arguments->code);
        return *ret_code ? 0 : fail(err, ERR_INTERNAL, "out of memory");
    }
    if (arguments->count < 2)
        return fail(err, ERR_BAD_REQUEST, "there is no code; give a file, - for stdin, or -c CODE");
    if (strcmp(arguments->words[1], "-") == 0)
        return read_to_end(STDIN_FILENO, "stdin", ret_code, ret_size, err);
    return read_input_file(arguments->words[1], ret_code, ret_size, err);
}

int session_run(struct session_arguments *arguments, error *err)
{
    char name[SESSION_NAME_SIZE];
    char *code = NULL;
    struct showing showing;
    glb_cell_options options = { .in = arguments->in,
                                 .limits = arguments->limits,
                                 .limit_count = arguments->limit_count,
                                 .on_output = arguments->json ? NULL : show_output,
                                 .on_event = arguments->json ? NULL : show_event,
                                 .context = &showing };
    glb_outcome *outcome = NULL;
    if (session_named(arguments, arguments->words[0], name, err) < 0 ||
        read_cell(arguments, &code, &options.code_length, err) < 0)
        return -1;
    options.code = code;
    terminal_init(&showing.out, STDOUT_FILENO);
    terminal_init(&showing.err, STDERR_FILENO);
    interrupted = arguments->client;
    struct sigaction action = { .sa_handler = interrupt };
    (void) sigaction(SIGINT, &action, NULL);
    int32_t result = glb_session_run(arguments->client, name, &options, sizeof options, &outcome);
    interrupted = NULL;
    terminal_done(&showing.out);
    terminal_done(&showing.err);
    free(code);
    if (result != GLB_OK)
        return library_failed(result, err);
    if (arguments->json)
        (void) puts(glb_outcome_json(outcome));
    glb_limit_reached limit;
    if (!arguments->json && glb_outcome_limit(outcome, &limit, sizeof limit) == GLB_OK)
        (void) complain("%s", limit.message);
    int status = glb_outcome_exit_status(outcome);
    glb_outcome_free(outcome);
    return status;
}
