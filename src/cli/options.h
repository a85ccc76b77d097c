/* options.h - command lines as tables: each row is a flag, and parsing, help and completion use the
 * same rows. */
#pragma once

#include "base/error.h"
#include "base/table.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct option_row;

/* Stores a value in `into`, the verb's own struct. Fails with "cause; fix". */
typedef int option_take(void *into, const struct option_row *row, const char *value, error *err);

/* What the shell's completion offers for a value. */
enum option_values {
    /* clang-format off */
    VALUES_NONE, VALUES_FILE, VALUES_FOLDER, VALUES_LANGUAGE, VALUES_SCOPE, VALUES_FORMAT, VALUES_VERB, VALUES_POLICY,
    VALUES_TEMPLATE, VALUES_SESSION, VALUES_APPROVAL, VALUES_KEY, VALUES_RECEIPT
    /* clang-format on */
};

struct option_row {
    const char *name;  /* "policy" for --policy */
    char letter;       /* 'p' for -p, 0 for none */
    const char *value; /* "NAME", NULL for a switch */
    enum option_values values;
    const char *text;  /* NULL: not in the help: an old name, or always refused */
    option_take *take; /* store_text, store_switch or a function of the verb */
    size_t field;      /* offset in the verb's struct, for these two */
};

option_take store_text;   /* const char * at `field` */
option_take store_switch; /* bool at `field` */

/* Reads "90s", "15m", "12h", "30d", or a time in the future (timestamp_read), as seconds from now
 * on. */
int option_read_span(const char *option, const char *text, int64_t *ret_s, error *err);

/* A verb's flags, and the other texts of its help. */
struct option_table {
    const char *verb;
    const char *examples; /* printed first by --help */
    const char *usage;
    const char *more; /* printed last, NULL for none */
    const struct option_row *rows;
    size_t count;
};

#define OPTION_ROWS(table) .rows = (table), .count = COUNT_OF(table)

enum { OPTIONS_TAKEN = 0, OPTIONS_HELP = 1 };

/* The words of a command line; words[0] is the verb. */
struct words {
    int count;
    char **words;
    int next; /* the first word not read yet */
    const char **operands;
    size_t most;    /* most operands */
    uint64_t given; /* a bit for each row of the table that was given */
};

/* Reads flags up to the first operand or "--"; words->next is then its index.
 * Returns  OPTIONS_HELP if --help was printed to stdout
 * Fails    ERR_BAD_REQUEST  naming the flag, and the one that was probably meant */
int options_read(const struct option_table *table, void *into, struct words *words, error *err);

/* The same for a verb that passes no words on to a program: words between the flags go to
 * words->operands. */
int options_read_all(const struct option_table *table, void *into, struct words *words, error *err);

/* Refuses an option that `verb` would ignore: its text begins with other verbs, as in "list, ps:
 * those that have ended too". */
int options_check(const struct option_table *table, const struct words *words, const char *verb,
                  error *err);

void options_print_help(const struct option_table *table, FILE *out);

/* Tables of verbs with flags, for completion; NULL if the verb has none. */
const struct option_table *options_of_verb(const char *verb);
const struct option_table *run_option_table(void);
extern const struct option_table approvals_option_table, approve_option_table, check_option_table,
    config_option_table, deny_option_table, key_option_table, libs_option_table,
    limits_option_table, log_option_table, manifest_option_table, mcp_option_table,
    net_option_table, policy_option_table, prompt_option_table, receipt_option_table,
    repl_option_table, replay_option_table, serve_option_table, session_option_table,
    setup_option_table, status_option_table, template_option_table, top_option_table;
const struct option_table *exec_option_table(void);
