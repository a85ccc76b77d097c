/* verbs.c - rules for all nouns: `session` alone is `session list`, and `ls` is `list`. */
#include "cli/commands.h"

#include "base/table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Other names of verbs: each means the first of these verbs that the noun has. */
static const struct {
    const char *alias, *verb;
} aliases[] = {
    { "ls", "list" },     { "rm", "remove" },     { "rm", "kill" },    { "rm", "revoke" },
    { "remove", "kill" }, { "remove", "revoke" }, { "create", "new" }, { "new", "create" },
};

static const struct {
    const char *noun, *verb;
} first_verbs[] = {
    { "session", "list" },  { "key", "list" },    { "policy", "list" },
    { "template", "list" }, { "config", "show" }, { "net", "rules" },
    { "limits", "report" }, { "log", "tail" },    { "receipt", "list" },
};

/* Is the word in a usage text like "build|list|show [NAME]"? */
static bool is_verb_of(const struct command *command, const char *word)
{
    size_t length = strlen(word);
    const char *end = command->arguments + strcspn(command->arguments, " ");
    for (const char *at = command->arguments; at < end; at += strcspn(at, "| ") + 1)
        if (strcspn(at, "| ") == length && strncmp(at, word, length) == 0)
            return true;
    return false;
}

static const char *verb_of_alias(const struct command *command, const char *word)
{
    for_each(row, aliases)
        if (strcmp(row->alias, word) == 0 && is_verb_of(command, row->verb))
            return row->verb;
    return NULL;
}

const char *verb_meant(const char *noun, const char *word)
{
    const struct command *command = command_named(noun);
    const char *verb =
        command && word && !is_verb_of(command, word) ? verb_of_alias(command, word) : NULL;
    return verb ? verb : word;
}

int no_such_verb(const char *noun, const char *word, error *err)
{
    enum { MAX = 24 };
    const char *names[MAX + 1] = { NULL };
    char words[200], all[200] = "";
    size_t count = 0, used = 0;
    const char *arguments = command_named(noun)->arguments;
    (void) snprintf(words, sizeof words, "%.*s", (int) strcspn(arguments, " "), arguments);
    for (char *rest = words; rest && count < MAX;)
        names[count++] = strsep(&rest, "|");
    const char *meant = word ? nearest_word(word, names) : NULL;
    if (meant)
        return fail(err, ERR_BAD_REQUEST, "there is no '%s %.40s'; did you mean glovebox %s %s",
                    noun, word, noun, meant);
    for (size_t i = 0; i < count && used < sizeof all; i++)
        used += (size_t) snprintf(all + used, sizeof all - used, "%s%s",
                                  i == 0          ? ""
                                  : i + 1 < count ? ", "
                                                  : " or ",
                                  names[i]);
    return word ? fail(err, ERR_BAD_REQUEST, "there is no '%s %.30s'; it is %s", noun, word, all)
                : fail(err, ERR_BAD_REQUEST, "say what to do: glovebox %s %s", noun, all);
}

int complain_of_verb(const char *noun, const char *word)
{
    error err;
    (void) no_such_verb(noun, word, &err);
    return complain_of(&err);
}

void add_first_verb(int *count, char ***words)
{
    static char word[16];
    char **noun = *words;
    const struct command *command = command_named(noun[0]);
    for_each(row, first_verbs)
        if (strcmp(row->noun, noun[0]) == 0)
            (void) snprintf(word, sizeof word, "%s", row->verb);
    if (!*word || (*count > 1 && (noun[1][0] != '-' || strcmp(noun[1], "--help") == 0)))
        return;
    for (int at = 2; at < *count; at++)
        if (is_verb_of(command, verb_meant(noun[0], noun[at])))
            return;
    noun[-1] = noun[0];
    noun[0] = word;
    --*words;
    ++*count;
}

void aliases_print(const struct command *command)
{
    for_each(row, aliases)
        if (verb_of_alias(command, row->alias) == row->verb && !is_verb_of(command, row->alias))
            (void) printf(" %s", row->alias);
}
