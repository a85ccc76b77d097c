/* completion.c - `glovebox completion bash|zsh|fish`: scripts printed from the same tables that
 * parse. Words in small letters in a verb's arguments column are offered: "build|list|show [NAME]",
 * "[OPTIONS|install]". */
#include "cli/commands.h"

#include "base/table.h"
#include "cli/options.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* A command that lists names or ids for completion: the first word of each line of a listing, or
 * the one after two blanks. With no other quotes, so that it works in every shell. */
#define NAMES(listing, word) \
    "glovebox " listing " 2>/dev/null | sed -n \"s/^\\(" word "\\) .*/\\1/p\" | sed \"s/.* //\""
#define OFFER_PATHS(kind) /* one in a line, since they may have blanks */ \
    "compopt -o filenames; local IFS=$'\\n'; COMPREPLY=($(compgen " kind " -- \"$cur\"))"
#define OFFER_WORDS(words)                                                                        \
    {                                                                                             \
        "COMPREPLY=($(compgen -W '" words "' -- \"$cur\"))", "(" words ")", " -f -a '" words "'", \
            NULL                                                                                  \
    }
#define OFFER_OF(names)                                                          \
    {                                                                            \
        "COMPREPLY=($(compgen -W \"$(" names ")\" -- \"$cur\"))",                \
            "{compadd -- ${(f)\"$(" names ")\"}}", " -f -a '(" names ")'", names \
    }

/* How a shell offers values: a row for each kind, a column for each shell. */
static const struct {
    const char *bash, *zsh, *fish;
    const char *names; /* the command itself; NULL: none */
} offers[] = {
    [VALUES_NONE] = { ":", " ", " -f" },
    [VALUES_FILE] = { OFFER_PATHS("-f"), "_files", " -F" },
    [VALUES_FOLDER] = { OFFER_PATHS("-d"), "_files -/", " -f -a '(__fish_complete_directories)'" },
    [VALUES_LANGUAGE] = OFFER_WORDS("python bash node r c cpp perl"),
    [VALUES_SCOPE] = OFFER_WORDS("run sessions approve audit admin"),
    [VALUES_FORMAT] = OFFER_WORDS("openai anthropic mcp openapi"),
    [VALUES_VERB] = OFFER_OF(NAMES("help", "  [a-z]*")),
    [VALUES_POLICY] = OFFER_OF(NAMES("policy list", "[a-z0-9-]*")),
    [VALUES_TEMPLATE] = OFFER_OF(NAMES("template list", "[a-z0-9-]*")),
    [VALUES_SESSION] = OFFER_OF(NAMES("session list", "ses_[0-9a-f]*")),
    [VALUES_APPROVAL] = OFFER_OF(NAMES("approvals", "apr_[0-9a-f]*")),
    [VALUES_KEY] = OFFER_OF(NAMES("key list", "[0-9a-f]\\{16\\}")),
    [VALUES_RECEIPT] = OFFER_OF(NAMES("log tail", ".*  rcp_[0-9a-f]*")),
};

/* What may follow a verb, or the verb of a noun, besides files. */
static const struct {
    const char *verb;
    enum option_values values;
} operands[] = {
    { "session", VALUES_SESSION },   { "repl", VALUES_SESSION },   { "policy", VALUES_POLICY },
    { "template", VALUES_TEMPLATE }, { "libs", VALUES_TEMPLATE },  { "approvals", VALUES_APPROVAL },
    { "approve", VALUES_APPROVAL },  { "deny", VALUES_APPROVAL },  { "key", VALUES_KEY },
    { "receipt", VALUES_RECEIPT },   { "replay", VALUES_RECEIPT }, { "help", VALUES_VERB },
};

static const char *names_for(const struct command *command) /* NULL: there are none */
{
    for_each(row, operands)
        if (strcmp(row->verb, command->name) == 0)
            return offers[row->values].names;
    return NULL;
}

/* Prints text in single quotes, with a backslash before `special` characters. */
static void print_quoted(const char *text, const char *special)
{
    for (; *text; text++)
        if (*text == '\'')
            (void) fputs("'\\''", stdout);
        else
            (void) printf(strchr(special, *text) ? "\\%c" : "%c", *text);
}

/* Finds the next word in small letters, "build" of "build|list [NAME]" or "install" of
 * "[OPTIONS|install]"; not a placeholder (ID) or a flag. NULL: there is none. */
static const char *next_word(const char *arguments, size_t *ret_length)
{
    static const char ends[] = " []|";
    for (arguments += strspn(arguments, ends); *arguments; arguments += strspn(arguments, ends)) {
        *ret_length = strcspn(arguments, ends);
        if (*arguments >= 'a' && *arguments <= 'z')
            return arguments;
        arguments += *ret_length;
    }
    return NULL;
}

static bool has_words(const struct command *command)
{
    size_t length;
    return next_word(command->arguments, &length) != NULL;
}

/* Must one of the words follow, as for "build|list [NAME]"? Else a name may follow as well. */
static bool begins_with_words(const struct command *command)
{
    return *command->arguments >= 'a' && *command->arguments <= 'z';
}

static void print_words(const struct command *command)
{
    size_t length = 0;
    for (const char *word = command->arguments; (word = next_word(word + length, &length));)
        (void) printf("%.*s ", (int) length, word);
    if (begins_with_words(command))
        aliases_print(command);
}

static void print_bash_verb(const struct command *command, const struct option_table *table)
{
    (void) printf("    %s)\n", command->name);
    if (table) {
        (void) puts("        case $prev in");
        for (size_t index = 0; index < table->count; index++) {
            const struct option_row *row = &table->rows[index];
            if (!row->value)
                continue;
            (void) printf("        --%s", row->name);
            if (row->letter)
                (void) printf("|-%c", row->letter);
            (void) printf(") %s; return ;;\n", offers[row->values].bash);
        }
        (void) puts("        esac");
    }
    (void) fputs("        flags='", stdout);
    for (size_t index = 0; table && index < table->count; index++)
        if (table->rows[index].text)
            (void) printf("--%s ", table->rows[index].name);
    (void) fputs("--help' words='", stdout);
    print_words(command);
    (void) puts("'");
    if (names_for(command)) /* run the command only where a name can follow */
        (void) printf("        [ \"$COMP_CWORD\" -lt %d ] || ids=$(%s)\n",
                      begins_with_words(command) ? 3 : 2, names_for(command));
    if (has_words(command) && !begins_with_words(command))
        (void) puts("        [ \"$COMP_CWORD\" -gt 2 ] || ids+=$'\\n'${words// /$'\\n'}\n"
                    "        words=''");
    (void) puts("        ;;");
}

static void print_bash(void)
{
    const struct command *command;
    (void) puts(
        "# bash completion for glovebox; source it, or put it where bash-completion looks.\n"
        "_glovebox() {\n"
        "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} flags='' "
        "words='' ids=''\n"
        "    COMPREPLY=()\n"
        "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    (void) fputs("        COMPREPLY=($(compgen -W '", stdout);
    for (unsigned index = 0; (command = command_at(index)); index++)
        (void) printf("%s ", command->name);
    (void) puts(
        "' -- \"$cur\"))\n        return\n    fi\n" /* --policy=data is three words of bash */
        "    if [ \"$cur\" = = ]; then cur=''\n"
        "    elif [ \"$prev\" = = ]; then prev=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
        "    case ${COMP_WORDS[1]} in");
    for (unsigned index = 0; (command = command_at(index)); index++)
        print_bash_verb(command, options_of_verb(command->name));
    (void) puts("    esac\n"
                "    case $cur in\n"
                "    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$cur\")) ;;\n"
                "    *)  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
                "        [ -z \"$words\" ] || [ \"$COMP_CWORD\" -gt 2 ] || return\n"
                "        local IFS=$'\\n'; compopt -o filenames\n"
                "        COMPREPLY=($(compgen -W \"$ids\" -- \"$cur\") "
                "$(compgen -f -- \"$cur\")) ;;\n"
                "    esac\n"
                "}\n"
                "complete -F _glovebox glovebox");
}

static void print_zsh_row(const struct option_row *row)
{
    if (row->letter)
        (void) printf(" \\\n            '(-%c --%s)'{-%c%s,--%s%s}'[", row->letter, row->name,
                      row->letter, row->value ? "+" : "", row->name, row->value ? "=" : "");
    else
        (void) printf(" \\\n            '--%s%s[", row->name, row->value ? "=" : "");
    print_quoted(row->text, "[]:");
    (void) fputs("]", stdout);
    if (row->value) {
        (void) putchar(':');
        print_quoted(row->value, "[]:");
        (void) printf(":%s", offers[row->values].zsh);
    }
    (void) putchar('\'');
}

static void print_zsh(void)
{
    const struct command *command;
    (void) puts("#compdef glovebox\n_glovebox() {\n    local -a verbs\n    verbs=(");
    for (unsigned index = 0; (command = command_at(index)); index++) {
        (void) printf("        '%s:", command->name);
        print_quoted(command->text, ":");
        (void) puts("'");
    }
    (void) puts(
        "    )\n    if (( CURRENT == 2 )); then\n        _describe verb verbs\n        return\n"
        "    fi\n    local verb=$words[2]\n    shift words\n    (( CURRENT-- ))\n"
        "    case $verb in");
    for (unsigned index = 0; (command = command_at(index)); index++) {
        const struct option_table *table = options_of_verb(command->name);
        (void) printf("    %s)\n        _arguments -s '(- *)'{-h,--help}'[explain]'",
                      command->name);
        for (size_t row = 0; table && row < table->count; row++)
            if (table->rows[row].text)
                print_zsh_row(&table->rows[row]);
        if (begins_with_words(command)) {
            (void) fputs(" '1:what:(", stdout);
            print_words(command);
            (void) fputs(")'", stdout);
        }
        (void) fputs(" '*:what:{", stdout);
        if (has_words(command) && !begins_with_words(command)) {
            (void) fputs("(( CURRENT > 2 )) || compadd ", stdout);
            print_words(command);
            (void) fputs("; ", stdout);
        }
        if (names_for(command))
            (void) printf("compadd -- ${(f)\"$(%s)\"}; ", names_for(command));
        (void) puts("_files}' ;;");
    }
    /* If it is sourced, it registers itself; in a folder of fpath it is the function. */
    (void) puts("    esac\n}\n"
                "if [ \"$funcstack[1]\" = _glovebox ]; then\n    _glovebox \"$@\"\n"
                "else\n    compdef _glovebox glovebox\nfi");
}

#define FISH "complete -c glovebox -n '__fish_seen_subcommand_from %s"

static void print_fish(void)
{
    const struct command *command;
    for (unsigned index = 0; (command = command_at(index)); index++) {
        (void) printf("complete -c glovebox -n __fish_use_subcommand -f -a %s -d '", command->name);
        print_quoted(command->text, "");
        (void) puts("'");
        const struct option_table *table = options_of_verb(command->name);
        for (size_t at = 0; table && at < table->count; at++) {
            const struct option_row *row = &table->rows[at];
            if (!row->text)
                continue;
            (void) printf(FISH "' -l %s", command->name, row->name);
            if (row->letter)
                (void) printf(" -s %c", row->letter);
            (void) printf("%s%s -d '", row->value ? " -r" : "", offers[row->values].fish);
            print_quoted(row->text, "");
            (void) puts("'");
        }
        if (has_words(command)) {
            (void) printf(FISH "; and test (count (commandline -opc)) -eq 2'%s -a '", command->name,
                          begins_with_words(command) ? " -f" : "");
            print_words(command);
            (void) puts("'");
        }
        if (names_for(command))
            (void) printf(FISH "' -a '(%s)'\n", command->name, names_for(command));
    }
}

int command_completion(int argc, char **argv)
{
    static const struct {
        const char *shell;
        void (*print)(void);
    } shells[] = { { "bash", print_bash }, { "zsh", print_zsh }, { "fish", print_fish } };
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        (void) puts("  source <(glovebox completion bash)      in ~/.bashrc\n"
                    "  source <(glovebox completion zsh)       in ~/.zshrc\n"
                    "  glovebox completion fish | source       in ~/.config/fish/config.fish\n"
                    "\nUsage: glovebox completion bash|zsh|fish");
        return 0;
    }
    for_each(row, shells)
        if (argc == 2 && strcmp(argv[1], row->shell) == 0) {
            row->print();
            return 0;
        }
    return complain("completion knows bash, zsh and fish; name one of them");
}
