/* cell.c - `glovebox session run`: runs one cell and prints what it shows. */
#include "cli/session/session.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "cli/commands.h"
#include "cli/common/approval_wait.h"
#include "cli/common/inputs.h"
#include "cli/common/limit_message.h"
#include "cli/common/output_check_report.h"
#include "cli/tty/output_filter.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct showing {
    struct terminal out, err;
    struct images *images; /* NULL: print their type only */
};

static int32_t show_output(void *context, int32_t stream, const void *data, size_t length)
{
    struct showing *showing = context;
    struct terminal *terminal = stream == GLB_STDERR ? &showing->err : &showing->out;
    terminal_write(terminal, data, length);
    return terminal->failed != 0;
}

/* Adds a newline if the text has none: tracebacks of python end with one, those of R do not. */
static void show_line(struct terminal *terminal, const char *text)
{
    size_t size = strlen(text);
    terminal_write(terminal, text, size);
    if (size == 0 || text[size - 1] != '\n')
        terminal_write(terminal, "\n", 1);
}

/* Prints an error that has no traceback, such as an interpreter that has ended. */
static void show_error(struct terminal *terminal, json_object *event)
{
    if (*answer_text(event, "traceback")) {
        show_line(terminal, answer_text(event, "traceback"));
        return;
    }
    terminal_write(terminal, answer_text(event, "name"), strlen(answer_text(event, "name")));
    terminal_write(terminal, ": ", 2);
    show_line(terminal, answer_text(event, "value"));
}

/* Shows the first picture of a value, which may have several forms, such as PNG and SVG. */
static void show_picture(struct showing *showing, json_object *data)
{
    static const char *const kinds[] = { "image/png", "image/jpeg", "image/gif" };
    for_each(kind, kinds) {
        const char *base64 = answer_text(data, *kind);
        if (*base64) {
            images_show(showing->images, &showing->out, *kind, base64);
            return;
        }
    }
}

static void name_pictures(struct showing *showing, json_object *data)
{
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

static int32_t show_event(void *context, const char *name, const char *json)
{
    struct showing *showing = context;
    if (strcmp(name, "result") != 0 && strcmp(name, "error") != 0)
        return 0;
    auto_json event = json_tokener_parse(json);
    json_object *data = NULL;
    if (*name == 'e') {
        show_error(&showing->err, event);
    } else if (json_object_object_get_ex(event, "data", &data) && data) {
        json_object *text = NULL;
        if (json_object_object_get_ex(data, "text/plain", &text) && text)
            show_line(&showing->out, json_object_get_string(text));
        if (showing->images)
            show_picture(showing, data);
        else
            name_pictures(showing, data);
    }
    return 0;
}

static glb_client *interrupted;

static void interrupt(int number)
{
    (void) number;
    if (interrupted)
        glb_cancel(interrupted);
}

/* A cell and the session to send it to. */
struct sending {
    const struct session_arguments *arguments;
    const char *session;
    struct cell *cell;
};

static int32_t send_cell(void *context)
{
    const struct sending *sending = context;
    const struct session_arguments *arguments = sending->arguments;
    struct cell *cell = sending->cell;
    struct showing showing = { .images = cell->images };
    bool is_shown = !arguments->json;
    glb_cell_options options = { .code = cell->code,
                                 .code_length = cell->size,
                                 .in = arguments->in,
                                 .limits = arguments->limits,
                                 .limit_count = arguments->limit_count,
                                 .on_output = is_shown ? show_output : NULL,
                                 .on_event = is_shown ? show_event : NULL,
                                 .context = &showing,
                                 .expectation = cell->expectation };
    glb_outcome_free(cell->outcome);
    cell->outcome = NULL;
    terminal_init(&showing.out, STDOUT_FILENO);
    terminal_init(&showing.err, STDERR_FILENO);
    int32_t code = glb_session_run(arguments->client, sending->session, &options, sizeof options,
                                   &cell->outcome);
    terminal_done(&showing.out);
    terminal_done(&showing.err);
    return code;
}

/* Is it a limit of one cell? The others hold for the whole session. */
static bool is_of_cell(const char *limit)
{
    return strcmp(limit, "wall") == 0 || strcmp(limit, "cpu") == 0 || strcmp(limit, "output") == 0;
}

/* Returns as decision_await(). After an interrupt it succeeds, and the cell stays undecided. */
static int await(struct sending *sending, error *err)
{
    const struct session_arguments *arguments = sending->arguments;
    struct cell *cell = sending->cell;
    const struct held held = { arguments->client, &cell->outcome, arguments->json, send_cell,
                               sending };
    int result = arguments->no_wait ? DECISION_CAME : decision_await(&held, err);
    cell->is_given_up =
        result < 0 && err->code == (enum error_code) GLB_E_CANCELLED && cell->outcome;
    return cell->is_given_up ? DECISION_CAME : result;
}

int cell_run(const struct session_arguments *arguments, const char *session, struct cell *cell,
             error *err)
{
    struct sending sending = { arguments, session, cell };
    struct sigaction action = { .sa_handler = interrupt };
    interrupted = arguments->client;
    (void) sigaction(SIGINT, &action, NULL);
    int32_t code = send_cell(&sending);
    int result = code == GLB_OK ? await(&sending, err) : library_failed(code, err);
    interrupted = NULL;
    if (result < 0) {
        glb_outcome_free(cell->outcome);
        return -1;
    }
    glb_limit_reached limit;
    if (result == DECISION_EXPIRED)
        (void) complain(
            "the approval was not decided in time, and is denied; run it again to ask again");
    else if (cell->is_given_up)
        decision_tell_given_up(cell->outcome, "cell");
    else if (!decision_tell(cell->outcome) && !arguments->json &&
             glb_outcome_limit(cell->outcome, &limit, sizeof limit) == GLB_OK)
        limit_message_print(&limit, is_of_cell(limit.name) ? "--limit " : "session new --limit ",
                            "=VALUE");
    if (!cell->is_given_up)
        output_check_tell(cell->outcome, false);
    return 0;
}

int cell_exit_status(const struct cell *cell)
{
    return cell->is_given_up ? EXIT_CANCELLED : glb_outcome_exit_status(cell->outcome);
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
    auto_text code = NULL;
    auto_text expectation = NULL;
    struct cell cell = { 0 };
    if ((arguments->expect && read_expectation(arguments->expect, &expectation, err) < 0) ||
        read_cell(arguments, &code, &cell.size, err) < 0)
        return -1;
    cell.code = code;
    cell.expectation = expectation;
    if (cell_run(arguments, arguments->session, &cell, err) < 0)
        return -1;
    if (arguments->json)
        (void) puts(glb_outcome_json(cell.outcome));
    int status = cell_exit_status(&cell);
    glb_outcome_free(cell.outcome);
    return status;
}
