/* commands.h - the verbs of `glovebox` and what they share: exit statuses, the one error line. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

/* Exit statuses that glovebox gives of its own; every other one is the program's. */
enum exit_status {
    EXIT_NOT_EXPECTED = 65,   /* the program ended with 0, its output is not what was expected */
    EXIT_TIMEOUT = 124,       /* a time limit, or another limit that made glovebox end the run */
    EXIT_OWN_FAILURE = 125,   /* glovebox could not do what was asked: bad usage included */
    EXIT_DENIED = 126,        /* the policy forbids it */
    EXIT_CANCELLED = 130,     /* Ctrl-C */
    EXIT_OUT_OF_MEMORY = 137, /* the memory limit */
};

/* A handler gets argv[0] = verb and returns the exit status of the program. Weak, so that a build
 * without one of the files still links; main.c looks before it calls. */
#define COMMAND(name, handler, ...) int handler(int argc, char **argv) __attribute__((weak));
#include "cli/commands.def"

struct command {
    const char *name;
    int (*handler)(int argc, char **argv);
    const char *arguments;
    const char *text;
};

/* Walks over all verbs of this build; NULL after the last. */
const struct command *command_at(unsigned index);

const struct command *command_named(const char *name); /* NULL: there is none */

/* The verb of a noun that a word means: "list" for "ls"; the word itself if it means no other. */
const char *verb_meant(const char *noun, const char *word);
/* Fails  ERR_BAD_REQUEST  a noun has no verb `word` (NULL: none was given): the nearest, or all of
 * them */
int no_such_verb(const char *noun, const char *word, error *err);
int complain_of_verb(const char *noun, const char *word); /* the same, printed */
/* `session --all` becomes `session list --all`. There is room for a word before the noun. */
void add_first_verb(int *count, char ***words);
/* " ls rm": the other names that a noun's verbs have, to stdout. */
void aliases_print(const struct command *command);

/* Adds text from a sandbox or another user to a line of `room` bytes: control bytes are shown as
 * \x0a, marks that reorder text or show nothing as <U+202E>. Gives  how long it is. */
size_t line_add_harmless(char *out, size_t used, size_t room, const char *text);
void print_harmless(FILE *out, const char *text); /* the same, to a stream */

/* Prints `glovebox: cause; fix` as one line on stderr, control bytes made visible.
 * Gives  EXIT_OWN_FAILURE, so that a handler ends in `return complain(...)`. */
int complain(const char *format, ...) PRINTF(1, 2);

/* The same for a failure that has been carried here. Gives the exit status for its code. */
int complain_of(const error *err);

/* The same where a policy was to be loaded: if there is none, says where it was looked for. `state`
 * is that of --state, or NULL. */
int complain_of_policy(const error *err, const char *state);

/* The word among `words` (NULL-ended) that is nearest to a mistyped one, NULL if none is near. */
const char *nearest_word(const char *wrong, const char *const *words);
