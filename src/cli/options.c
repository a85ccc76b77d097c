/* options.c - a parser that knows nothing of any verb. */
#include "cli/options.h"

#include "base/table.h"
#include "cli/commands.h"

#include <string.h>

enum { NAMES_MOST = 96 };

int store_text(void *into, const struct option_row *row, const char *value, error *err)
{
    if (!*value)
        return fail(err, ERR_BAD_REQUEST, "--%s is empty; give a %s", row->name, row->value);
    *(const char **) ((char *) into + row->field) = value;
    return 0;
}

int store_switch(void *into, const struct option_row *row, const char *value, error *err)
{
    (void) value;
    (void) err;
    *(bool *) ((char *) into + row->field) = true;
    return 0;
}

static const struct option_row *find_row(const struct option_table *table, const char *name,
                                         size_t length, char letter)
{
    for (size_t index = 0; index < table->count; index++) {
        const struct option_row *row = &table->rows[index];
        if (letter != '\0' ? row->letter == letter
                           : strlen(row->name) == length && strncmp(row->name, name, length) == 0)
            return row;
    }
    return NULL;
}

static int no_such_flag(const struct option_table *table, const char *flag, size_t length, error *err)
{
    const char *names[NAMES_MOST] = { NULL };
    char wrong[64];
    (void) snprintf(wrong, sizeof wrong, "%.*s", (int) length, flag);
    for (size_t index = 0; index < table->count && index < NAMES_MOST - 1; index++)
        names[index] = table->rows[index].name;
    const char *meant = flag[0] == '-' ? nearest_word(wrong + 2, names) : NULL;
    if (meant)
        return fail(err, ERR_BAD_REQUEST, "there is no option %s; did you mean --%s?", wrong, meant);
    return fail(err, ERR_BAD_REQUEST, "there is no option %s; see glovebox %s --help", wrong,
                table->verb);
}

/* Takes the flag at argv[at]. Gives *ret_used, how many words it was. */
static int read_flag(const struct option_table *table, void *into, char **words, int count,
                     int *ret_used, error *err)
{
    const char *word = words[0];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t) (equals - word) : strlen(word);
    const struct option_row *row = is_long ? find_row(table, word + 2, length - 2, '\0')
                                           : find_row(table, NULL, 0, word[1]);
    *ret_used = 1;
    if (!row)
        return no_such_flag(table, word, length, err);
    const char *attached = equals ? equals + 1 : !is_long && word[2] ? word + 2 : NULL;
    if (!row->value) {
        if (attached && is_long)
            return fail(err, ERR_BAD_REQUEST, "--%s takes no value; write it alone", row->name);
        if (attached)
            return fail(err, ERR_BAD_REQUEST, "-%c takes no value; write flags one by one",
                        row->letter);
        return row->take(into, row, NULL, err);
    }
    if (attached)
        return row->take(into, row, attached, err);
    if (count < 2)
        return fail(err, ERR_BAD_REQUEST, "%s needs a value: %s %s", word, word, row->value);
    *ret_used = 2;
    return row->take(into, row, words[1], err);
}

int options_read(const struct option_table *table, void *into, int argc, char **argv, int *ret_next,
                 error *err)
{
    int at = 1;
    while (at < argc && argv[at][0] == '-' && argv[at][1] != '\0') {
        if (strcmp(argv[at], "--") == 0) {
            at++;
            break;
        }
        if (strcmp(argv[at], "--help") == 0 || strcmp(argv[at], "-h") == 0) {
            options_print_help(table, stdout);
            return OPTIONS_HELP;
        }
        int used = 1;
        if (read_flag(table, into, argv + at, argc - at, &used, err) < 0)
            return -1;
        at += used;
    }
    *ret_next = at;
    return OPTIONS_TAKEN;
}

void options_print_help(const struct option_table *table, FILE *out)
{
    (void) fprintf(out, "%s\nUsage: glovebox %s %s\n\n", table->examples, table->verb, table->usage);
    for (size_t index = 0; index < table->count; index++) {
        const struct option_row *row = &table->rows[index];
        char flag[64];
        char letter[8] = "    ";
        if (row->letter)
            (void) snprintf(letter, sizeof letter, "-%c, ", row->letter);
        (void) snprintf(flag, sizeof flag, "%s--%s%s%s", letter, row->name, row->value ? " " : "",
                        row->value ? row->value : "");
        (void) fprintf(out, "  %-30s %s\n", flag, row->text);
    }
    (void) fprintf(out, "  %-30s %s\n", "-h, --help", "print this");
    if (table->more)
        (void) fprintf(out, "\n%s", table->more);
}

const struct option_table *options_of_verb(const char *verb)
{
    static const struct {
        const char *verb;
        const struct option_table *(*table)(void);
    } tables[] = {
        { "run", run_option_table },
        { "exec", exec_option_table },
        { "serve", serve_option_table },
        { "libs", libs_option_table },
    };
    for_each(row, tables)
        if (strcmp(row->verb, verb) == 0)
            return row->table();
    return NULL;
}
