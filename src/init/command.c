/* command.c - reads the strings of an AGENT_START: as many as it says, each ended by NUL. */
#include "init/init.h"

#include <string.h>

static char *next_text(const char **at, const char *end)
{
    const char *text = *at;
    const char *stop = text < end ? memchr(text, '\0', (size_t) (end - text)) : NULL;
    if (!stop)
        return NULL;
    *at = stop + 1;
    return (char *) (uintptr_t) text;
}

int read_command(const struct agent_start *start, const char *at, const char *end,
                 struct command *command, error *err)
{
    if (start->arguments == 0 || start->arguments > AGENT_ARGUMENTS_MAX ||
        start->variables > AGENT_ARGUMENTS_MAX)
        return fail(err, ERR_PROTOCOL, "a command has 1 to %d arguments and up to %d variables",
                    AGENT_ARGUMENTS_MAX, AGENT_ARGUMENTS_MAX);
    command->folder = next_text(&at, end);
    for (unsigned i = 0; i < start->arguments; i++)
        command->arguments[i] = next_text(&at, end);
    for (unsigned i = 0; i < start->variables; i++)
        command->variables[i] = next_text(&at, end);
    command->arguments[start->arguments] = NULL;
    command->variables[start->variables] = NULL;
    if (!command->folder || !command->arguments[start->arguments - 1U] ||
        (start->variables > 0 && !command->variables[start->variables - 1U]))
        return fail(err, ERR_PROTOCOL, "the strings of a command are cut short");
    return 0;
}
