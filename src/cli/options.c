/* options.c - parses command lines by tables; nothing here is about a certain verb. */
#include "cli/options.h"

#include "base/clock.h"
#include "base/timestamp.h"
#include "cli/commands.h"
#include "model/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

enum { NAMES_MAX = 96 };

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

int option_read_span(const char *option, const char *text, int64_t *ret_s, error *err)
{
    static const char units[] = "smhd";
    static const int64_t seconds[] = { 1, 60, 3600, 86400 };
    char *end = NULL;
    int64_t moment_ms = timestamp_read(text);
    *ret_s = (moment_ms - wall_clock_ms() + 999) / 1000;
    if (moment_ms != 0 && *ret_s > 0)
        return 0;
    errno = 0;
    long number = strtol(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (errno != 0 || *text < '0' || *text > '9' || number < 1 || number > 1000000 || !unit ||
        end[1])
        return fail(err, ERR_BAD_REQUEST,
                    "--%s takes a time such as 90s, 15m, 12h or 30d, or a moment to come such as "
                    "2036-11-22T03:00:00Z, not '%.40s'",
                    option, text);
    *ret_s = number * seconds[unit - units];
    return 0;
}

static const struct option_row *find_name(const struct option_table *table, const char *name,
                                          size_t length)
{
    for (size_t index = 0; index < table->count; index++)
        if (strlen(table->rows[index].name) == length &&
            strncmp(table->rows[index].name, name, length) == 0)
            return &table->rows[index];
    return NULL;
}

static const struct option_row *find_letter(const struct option_table *table, char letter)
{
    for (size_t index = 0; index < table->count; index++)
        if (table->rows[index].letter == letter)
            return &table->rows[index];
    return NULL;
}

static int no_such_flag(const struct option_table *table, const char *flag, size_t length,
                        error *err)
{
    const char *names[NAMES_MAX] = { NULL };
    char wrong[64];
    (void) snprintf(wrong, sizeof wrong, "%.*s", (int) length, flag);
    for (size_t index = 0; index < table->count && index < NAMES_MAX - 1; index++)
        names[index] = table->rows[index].name;
    if (find_name(table, "limit", 5) && length > 2 && limit_find(wrong + 2) != LIMITS)
        return fail(err, ERR_BAD_REQUEST, "there is no option %s here; write --limit %s=VALUE",
                    wrong, wrong + 2);
    const char *meant = flag[0] == '-' ? nearest_word(wrong + 2, names) : NULL;
    if (meant)
        return fail(err, ERR_BAD_REQUEST, "there is no option %s; did you mean --%s?", wrong,
                    meant);
    return fail(err, ERR_BAD_REQUEST, "there is no option %s; see glovebox %s --help", wrong,
                table->verb);
}

/* Reads one flag with its value. */
static int read_flag(const struct option_table *table, void *into, struct words *words, error *err)
{
    const char *word = words->words[words->next++];
    bool is_long = word[1] == '-';
    const char *equals = is_long ? strchr(word, '=') : NULL;
    size_t length = equals ? (size_t) (equals - word) : strlen(word);
    const struct option_row *row =
        is_long ? find_name(table, word + 2, length - 2) : find_letter(table, word[1]);
    if (!row)
        return no_such_flag(table, word, length, err);
    words->given |= UINT64_C(1) << (row - table->rows);
    const char *attached = equals ? equals + 1 : !is_long && word[2] ? word + 2 : NULL;
    if (!row->value) {
        if (attached && is_long)
            return fail(err, ERR_BAD_REQUEST, "--%s takes no value; write it alone", row->name);
        if (attached)
            return fail(err, ERR_BAD_REQUEST, "-%c takes no value; write flags one by one",
                        row->letter);
        return row->take(into, row, "", err);
    }
    if (attached)
        return row->take(into, row, attached, err);
    if (words->next == words->count)
        return fail(err, ERR_BAD_REQUEST, "%s needs a value: %s %s", word, word, row->value);
    return row->take(into, row, words->words[words->next++], err);
}

int options_read(const struct option_table *table, void *into, struct words *words, error *err)
{
    while (words->next < words->count) {
        const char *word = words->words[words->next];
        if (word[0] != '-' || word[1] == '\0')
            break;
        if (strcmp(word, "--") == 0) {
            words->next++;
            break;
        }
        if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
            options_print_help(table, stdout);
            return OPTIONS_HELP;
        }
        if (read_flag(table, into, words, err) < 0)
            return -1;
    }
    return OPTIONS_TAKEN;
}

int options_read_all(const struct option_table *table, void *into, struct words *words, error *err)
{
    for (size_t count = 0;; words->next++) {
        int outcome = options_read(table, into, words, err);
        if (outcome != OPTIONS_TAKEN || words->next == words->count)
            return outcome;
        if (count == words->most)
            return fail(err, ERR_BAD_REQUEST, "%s takes no '%s'; see glovebox %s --help",
                        table->verb, words->words[words->next], table->verb);
        words->operands[count++] = words->words[words->next];
    }
}

static bool is_taken_by(const char *text, const char *verb)
{
    char verbs[96], one[40];
    size_t end = strspn(text, "abcdefghijklmnopqrstuvwxyz-, ");
    (void) snprintf(verbs, sizeof verbs, ", %.*s,", (int) end, text);
    (void) snprintf(one, sizeof one, ", %s,", verb);
    return text[end] != ':' || strstr(verbs, one); /* without verbs the option is for all */
}

int options_check(const struct option_table *table, const struct words *words, const char *verb,
                  error *err)
{
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        if (words->given >> i & 1 && row->text && !is_taken_by(row->text, verb))
            return fail(err, ERR_BAD_REQUEST,
                        "%s %s takes no --%s; leave it out, or see glovebox %s --help", table->verb,
                        verb, row->name, table->verb);
    }
    return 0;
}

/* Prints the text beside a flag, folded at the width of the terminal. */
static void print_text(FILE *out, const char *text)
{
    enum { BEGIN = 33, ROOM_MIN = 24 };
    struct winsize size = { 0 };
    (void) ioctl(fileno(out), TIOCGWINSZ, &size);
    size_t room = size.ws_col < BEGIN + ROOM_MIN ? SIZE_MAX : (size_t) size.ws_col - BEGIN;
    while (strlen(text) > room) {
        size_t cut = room;
        while (cut > 0 && text[cut] != ' ')
            cut--;
        cut = cut > 0 ? cut : strcspn(text, " ");
        (void) fprintf(out, "%.*s\n%*s", (int) cut, text, BEGIN, "");
        text += cut + strspn(text + cut, " ");
    }
    (void) fprintf(out, "%s\n", text);
}

void options_print_help(const struct option_table *table, FILE *out)
{
    (void) fprintf(out, "%s\nUsage: glovebox %s %s\n\n", table->examples, table->verb,
                   table->usage);
    for (size_t index = 0; index < table->count; index++) {
        const struct option_row *row = &table->rows[index];
        if (!row->text)
            continue;
        char flag[64];
        char letter[8] = "    ";
        if (row->letter)
            (void) snprintf(letter, sizeof letter, "-%c, ", row->letter);
        (void) snprintf(flag, sizeof flag, "%s--%s%s%s", letter, row->name, row->value ? " " : "",
                        row->value ? row->value : "");
        int width = 30; /* printf counts bytes, and "…" has three */
        for (const char *at = flag; *at; at++)
            width += (*at & 0xC0) == 0x80;
        (void) fprintf(out, "  %-*s ", width, flag);
        print_text(out, row->text);
    }
    (void) fprintf(out, "  %-30s %s\n", "-h, --help", "print this");
    if (table->more)
        (void) fprintf(out, "\n%s", table->more);
}

const struct option_table *options_of_verb(const char *verb)
{
    static const struct {
        const struct option_table *table;
    } verbs[] = {
        { &approvals_option_table }, { &approve_option_table }, { &check_option_table },
        { &config_option_table },    { &deny_option_table },    { &key_option_table },
        { &libs_option_table },      { &limits_option_table },  { &log_option_table },
        { &manifest_option_table },  { &mcp_option_table },     { &net_option_table },
        { &policy_option_table },    { &prompt_option_table },  { &receipt_option_table },
        { &repl_option_table },      { &replay_option_table },  { &serve_option_table },
        { &session_option_table },   { &setup_option_table },   { &status_option_table },
        { &template_option_table },  { &top_option_table },
    };
    if (strcmp(verb, "run") == 0 || strcmp(verb, "exec") == 0)
        return *verb == 'r' ? run_option_table() : exec_option_table();
    for_each(row, verbs)
        if (strcmp(row->table->verb, verb) == 0)
            return row->table;
    return NULL;
}
