/* main.c - `glovebox VERB …`: finds the row of the verb in commands.def and calls its handler. */
#include "cli/commands.h"

#include "base/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static const struct command commands[] = {
#define GROUP(title)                            { NULL, NULL, NULL, title },
#define COMMAND(name, handler, arguments, text) { #name, handler, arguments, text },
#include "cli/commands.def"
};

const struct command *command_at(unsigned index)
{
    for_each(command, commands)
        if (command->handler && index-- == 0)
            return command;
    return NULL;
}

static void print_usage(FILE *out)
{
    (void) fputs("Runs code that a language model wrote, where it can do no harm.\n"
                 "\n"
                 "  glovebox run script.py                       run a script\n"
                 "  glovebox run -c \"print('hello sandbox')\"     run a line of code\n"
                 "  glovebox run --file data.csv --out out plot.py\n"
                 "                                               send a file, save what is made\n"
                 "  glovebox exec -- ls -l                       run a command\n"
                 "\n"
                 "Usage: glovebox VERB [OPTIONS] …\n",
                 out);
    for_each(command, commands) {
        if (!command->name)
            (void) fprintf(out, "\n%s\n", command->text);
        else if (command->handler)
            (void) fprintf(out, "  %-11s %s\n", command->name, command->text);
    }
    (void) fputs(
        "\nEverywhere ls, rm and new mean list, remove and create; a noun without verb lists\n"
        "what there is. glovebox help VERB explains a verb, examples first. Variables:\n"
        "GLOVEBOX_SOCKET is the daemon to use (a socket or HOST:PORT), GLOVEBOX_API_KEY\n"
        "its key, GLOVEBOX_STATE where templates are kept.\n",
        out);
}

const struct command *command_named(const char *name)
{
    const struct command *command;
    for (unsigned index = 0; (command = command_at(index)); index++)
        if (strcmp(command->name, name) == 0)
            return command;
    return NULL;
}

static int no_such_command(const char *name)
{
    const char *names[COUNT_OF(commands) + 1] = { NULL };
    const struct command *command;
    for (unsigned index = 0; (command = command_at(index)); index++)
        names[index] = command->name;
    const char *meant = nearest_word(name, names);
    if (meant)
        return complain("there is no verb '%s'; did you mean '%s'?", name, meant);
    return complain("there is no verb '%s'; see glovebox help", name);
}

int command_help(int argc, char **argv)
{
    bool is_own = argc < 2 || strcmp(argv[1], "help") == 0 || strcmp(argv[1], "-h") == 0 ||
                  strcmp(argv[1], "--help") == 0;
    if (is_own) {
        print_usage(stdout);
        return 0;
    }
    const struct command *command = command_named(argv[1]);
    if (!command)
        return no_such_command(argv[1]);
    char help[] = "--help";
    char *arguments[] = { argv[1], help, NULL };
    return command->handler(2, arguments);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_OWN_FAILURE;
    }
    const char *name = argv[1];
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0)
        name = "help";
    if (strcmp(name, "-V") == 0 || strcmp(name, "--version") == 0)
        name = "version";
    const struct command *command = command_named(name);
    if (!command)
        return no_such_command(name);
    int count = argc - 1;
    char **words = argv + 1;
    add_first_verb(&count, &words);
    return command->handler(count, words);
}
