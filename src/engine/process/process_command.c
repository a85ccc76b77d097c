/* process_command.c - reads a client's request for a program, and writes the START payload for
 * init. */
#include "engine/process/processes.h"

#include "base/table.h"
#include "policy/policy.h"
#include "json/field_table.h"

#include <stdio.h>
#include <string.h>

int process_request_read(struct json_object *json, struct process_request *ret_request, error *err)
{
    struct json_object *terminal = NULL;
    *ret_request = (struct process_request){ .rows = 24, .columns = 80 };
    const struct field fields[] = {
        { "command", FIELD_JSON, &ret_request->command, 0 },
        { "shell", FIELD_TEXT, &ret_request->shell, AGENT_PAYLOAD_MAX / 2 },
        { "env", FIELD_JSON, &ret_request->env, 0 },
        { "cwd", FIELD_TEXT, &ret_request->folder, AGENT_PATH_MAX / 2 },
        { "tag", FIELD_TEXT, &ret_request->tag, PROCESS_TAG_MAX },
        { "stdin", FIELD_FLAG, &ret_request->has_stdin, 0 },
        { "terminal", FIELD_JSON, &terminal, 0 },
        { "timeout_ms", FIELD_COUNT, &ret_request->timeout_ms, PROCESS_TIMEOUT_MAX_MS },
    };
    const struct field of_terminal[] = {
        { "rows", FIELD_COUNT, &ret_request->rows, PROCESS_TERMINAL_MAX },
        { "columns", FIELD_COUNT, &ret_request->columns, PROCESS_TERMINAL_MAX },
    };
    if (fields_read(json, fields, COUNT_OF(fields), err) < 0)
        return -1;
    ret_request->has_terminal = terminal != NULL;
    return fields_read(terminal, of_terminal, COUNT_OF(of_terminal), err);
}

void process_request_done(struct process_request *request)
{
    bytes_done(&request->shell);
    bytes_done(&request->folder);
    bytes_done(&request->tag);
}

static int add_text(struct bytes *out, struct json_object *text, const char *what, error *err)
{
    if (!json_object_is_type(text, json_type_string) ||
        strlen(json_object_get_string(text)) != (size_t) json_object_get_string_len(text))
        return fail(err, ERR_BAD_REQUEST, "'%s' must contain only texts", what);
    bytes_add(out, json_object_get_string(text), (size_t) json_object_get_string_len(text) + 1);
    return 0;
}

static int add_command(const struct process_request *request, struct agent_start *start,
                       struct bytes *out, error *err)
{
    if (request->shell.size > 0) {
        bytes_add(out, "/bin/bash\0-l\0-c", 16);
        bytes_add(out, request->shell.data, request->shell.size);
        bytes_add(out, "", 1);
        start->arguments = 4;
        return 0;
    }
    if (!json_object_is_type(request->command, json_type_array) ||
        json_object_array_length(request->command) == 0 ||
        json_object_array_length(request->command) > AGENT_ARGUMENTS_MAX)
        return fail(err, ERR_BAD_REQUEST,
                    "'command' must be a list of 1 to %d texts; or give 'shell', a line for bash",
                    AGENT_ARGUMENTS_MAX);
    start->arguments = (uint16_t) json_object_array_length(request->command);
    for (unsigned i = 0; i < start->arguments; i++)
        if (add_text(out, json_object_array_get_idx(request->command, i), "command", err) < 0)
            return -1;
    return 0;
}

/* The variables of the session, overridden by those of the request. */
static int add_variables(const struct process_request *request, struct agent_start *start,
                         struct bytes *out, error *err)
{
    const struct bytes *own = request->variables;
    for (size_t at = 0; at < own->size; at += strlen(own->data + at) + 1) {
        const char *each = own->data + at;
        char name[256];
        (void) snprintf(name, sizeof name, "%.*s", (int) strcspn(each, "="), each);
        if (request->env && json_object_object_get_ex(request->env, name, NULL))
            continue;
        bytes_add(out, each, strlen(each) + 1);
        start->variables++;
    }
    if (request->has_terminal &&
        !(request->env && json_object_object_get_ex(request->env, "TERM", NULL))) {
        bytes_add(out, "TERM=xterm-256color", 20);
        start->variables++;
    }
    if (!request->env)
        return 0;
    if (!json_object_is_type(request->env, json_type_object))
        return fail(err, ERR_BAD_REQUEST, "'env' must be an object of texts");
    json_object_object_foreach(request->env, key, value)
    {
        const char *text = json_object_get_string(value);
        if (policy_check_variable(key, text ? text : "", err) < 0)
            return -1;
        bytes_add(out, key, strlen(key));
        bytes_add(out, "=", 1);
        if (add_text(out, value, "env", err) < 0)
            return -1;
        start->variables++;
    }
    if (start->variables > AGENT_ARGUMENTS_MAX)
        return fail(err, ERR_BAD_REQUEST, "%u variables, %d are allowed", start->variables,
                    AGENT_ARGUMENTS_MAX);
    return 0;
}

int process_write_start(const struct process_request *request, struct bytes *out, error *err)
{
    struct agent_start start = {
        .flags = AGENT_START_CREDIT,
        .rows = (uint16_t) request->rows,
        .columns = (uint16_t) request->columns,
    };
    if (request->has_terminal)
        start.flags |= AGENT_START_TERMINAL;
    else if (request->has_stdin)
        start.flags |= AGENT_START_STDIN_PIPE;
    bytes_add(out, &start, sizeof start);
    if (request->folder.size > 0 && request->folder.data[0] != '/')
        bytes_add_text(out, "/workspace/");
    else if (request->folder.size == 0)
        bytes_add_text(out, "/workspace");
    bytes_add(out, request->folder.data, request->folder.size);
    bytes_add(out, "", 1);
    if (add_command(request, &start, out, err) < 0 || add_variables(request, &start, out, err) < 0)
        return -1;
    if (out->failed || out->size > AGENT_PAYLOAD_MAX)
        return fail(err, ERR_TOO_LARGE,
                    "a command and its environment have %zu bytes, %d are allowed", out->size,
                    AGENT_PAYLOAD_MAX);
    memcpy(out->data, &start, sizeof start);
    return 0;
}
