/* commands.h - the verbs of `glovebox` and what they share: exit statuses, and error messages. */
#pragma once

#include "base/error.h"

#include <stddef.h>
#include <stdio.h>

/* Exit statuses of glovebox itself; all others are those of the program. */
enum exit_status {
    EXIT_NOT_EXPECTED = 65,   /* the program ended with 0, its output does not meet --expect */
    EXIT_TIMEOUT = 124,       /* a time limit, or another limit that made glovebox end the run */
    EXIT_OWN_FAILURE = 125,   /* glovebox failed; also wrong usage */
    EXIT_DENIED = 126,        /* the policy forbids it */
    EXIT_CANCELLED = 130,     /* Ctrl-C */
    EXIT_OUT_OF_MEMORY = 137, /* the memory limit */
};

/* A handler gets argv[0] = verb and returns the exit status. Weak, so that a build without one of
 * the files still links; main.c checks for NULL. */
#define COMMAND(name, handler, ...) int handler(int argc, char **argv) __attribute__((weak));
#include "cli/commands.def"

struct command {
    const char *name;
    int (*handler)(int argc, char **argv);
    const char *arguments;
    const char *text;
};

/* The verbs of this build, by index; NULL after the last. */
const struct command *command_at(unsigned index);

const struct command *command_named(const char *name); /* NULL: there is none */

/* The verb of a noun for a word: "list" for "ls"; the word itself if it has no other name. */
const char *verb_meant(const char *noun, const char *word);
/* Fails  ERR_BAD_REQUEST  the noun has no verb `word` (NULL: none was given); names the nearest
 * verb, or all */
int no_such_verb(const char *noun, const char *word, error *err);
int complain_of_verb(const char *noun, const char *word); /* prints that */
/* `session --all` becomes `session list --all`. Overwrites the word before the noun. */
void add_first_verb(int *count, char ***words);
/* Prints other names of a noun's verbs, " ls rm". */
void aliases_print(const struct command *command);

/* Adds text from a sandbox or another user to a line of `room` bytes: control bytes become \x0a,
 * characters that reorder text or are invisible <U+202E>. Returns the length of the line. */
size_t line_add_harmless(char *out, size_t used, size_t room, const char *text);
void print_harmless(FILE *out, const char *text); /* the same, to a stream */

/* Prints `glovebox: cause; fix` as one line on stderr, with control bytes made visible.
 * Returns  EXIT_OWN_FAILURE, so that a handler can end with `return complain(...)`. */
int complain(const char *format, ...) PRINTF(1, 2);

/* The same for a failure. Returns the exit status for its code. */
int complain_of(const error *err);

/* The same for a failure to load a policy: if there is none, prints the folders that were searched.
 * `state` is that of --state, or NULL. */
int complain_of_policy(const error *err, const char *state);

/* The word of `words` (NULL-ended) that is most similar to a mistyped one, NULL if none is. */
const char *nearest_word(const char *wrong, const char *const *words);
