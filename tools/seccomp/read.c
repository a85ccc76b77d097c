/* read.c - reads a table strictly: what is not understood is a complaint with file and line. */
#include "table.h"

#include "base/table.h"

#include <errno.h>
#include <seccomp.h>
#include <stdlib.h>
#include <string.h>

struct place {
    const char *file;
    int line;
};

static int read_number(const struct place *place, const char *word, uint64_t *ret_value, error *err)
{
    if (!word)
        return complain(place, err, "a number or its name is missing");
    char *end = NULL;
    errno = 0;
    uint64_t value = strtoull(word, &end, 0);
    if (word[0] >= '0' && word[0] <= '9' && *end == '\0' && errno == 0) {
        *ret_value = value;
        return 0;
    }
    if (word_value(word, ret_value) < 0)
        return complain(place, err, "'%s' is no number and no name that the compiler knows", word);
    return 0;
}

/* One test: "arg0 & MASK == VALUE". */
static int read_test(const struct place *place, char **rest, struct test *test, error *err)
{
    const char *subject = strtok_r(NULL, " \t", rest);
    const char *prefix = NULL;
    if (subject && strncmp(subject, "arg", 3) == 0)
        prefix = "arg";
    else if (subject && strncmp(subject, "whole", 5) == 0)
        prefix = "whole";
    const char *digit = prefix ? subject + strlen(prefix) : "";
    if (digit[0] < '0' || digit[0] > '5' || digit[1] != '\0')
        return complain(place, err, "a test begins with arg0 to arg5, or whole0 to whole5");

    *test = (struct test){ .argument = (unsigned) (digit[0] - '0'), .whole = prefix[0] == 'w' };
    test->mask = test->whole ? UINT64_MAX : UINT32_MAX;
    const char *relation = strtok_r(NULL, " \t", rest);
    if (relation && strcmp(relation, "&") == 0) {
        if (read_number(place, strtok_r(NULL, " \t", rest), &test->mask, err) < 0)
            return -1;
        relation = strtok_r(NULL, " \t", rest);
    }
    if (!relation || (strcmp(relation, "==") != 0 && strcmp(relation, "!=") != 0))
        return complain(place, err, "a test needs == or !=");
    test->equal = relation[0] == '=';
    if (read_number(place, strtok_r(NULL, " \t", rest), &test->value, err) < 0)
        return -1;
    if (test->whole && (test->mask != UINT64_MAX || !test->equal))
        return complain(place, err, "whole%u can only be compared with ==", test->argument);
    if (!test->whole && (test->mask > UINT32_MAX || test->value > UINT32_MAX))
        return complain(place, err, "arg%u has 32 bits; use whole%u", test->argument,
                        test->argument);
    if ((test->value & ~test->mask) != 0)
        return complain(place, err, "the test can never hold: the value has bits outside the mask");
    return 0;
}

static int read_action(const struct place *place, struct row *row, char **rest, error *err)
{
    static const struct {
        const char *name;
        enum action action;
        bool says_error, counted;
        int os;
    } actions[] = {
        { "allow", ALLOW, false, false, 0 }, { "refuse", REFUSE, true, false, 0 },
        { "count", REFUSE, true, true, 0 },  { "fail", FAIL, true, false, 0 },
        { "skip", FAIL, false, false, 0 },   { "nosys", FAIL, false, false, ENOSYS },
    };
    char *word = strtok_r(NULL, " \t", rest);
    if (!word)
        return complain(place, err, "'%s' has no action", row->name);
    char *suffix = strstr(word, "-if");
    bool conditional = suffix && suffix[3] == '\0';
    if (conditional)
        *suffix = '\0';
    for_each(known, actions) {
        if (strcmp(known->name, word) != 0)
            continue;
        row->action = known->action;
        row->counted = known->counted;
        row->os = known->os;
        uint64_t os = 0;
        if (known->says_error) {
            const char *name = strtok_r(NULL, " \t", rest);
            if (!name || error_value(name, &os) < 0)
                return complain(place, err, "%s needs one of the errors that the compiler knows",
                                word);
            row->os = (int) os;
        }
        const char *joint = NULL;
        do {
            if (!conditional)
                break;
            if (row->tests == TESTS_MOST)
                return complain(place, err, "more than %d tests", TESTS_MOST);
            if (read_test(place, rest, &row->test[row->tests++], err) < 0)
                return -1;
            joint = strtok_r(NULL, " \t", rest);
        } while (joint && strcmp(joint, "and") == 0);
        if (joint || strtok_r(NULL, " \t", rest))
            return complain(place, err, "there is more on the line than '%s' takes", word);
        return 0;
    }
    return complain(place, err, "'%s' is no action", word);
}

/* The number is libseccomp's; the one in the table is for calls that it does not know. A call that
 * this architecture does not have gives 1. */
static int find_number(const struct place *place, struct row *row, error *err)
{
    char *at = strchr(row->name, '@');
    uint64_t given = UINT64_MAX;
    if (at) {
        *at = '\0';
        if (read_number(place, at + 1, &given, err) < 0)
            return -1;
    }
    int known = seccomp_syscall_resolve_name_arch(seccomp_arch_native(), row->name);
    if (known == __NR_SCMP_ERROR && given == UINT64_MAX)
        return complain(place, err, "libseccomp knows no call '%s'; write %s@NUMBER", row->name,
                        row->name);
    if (known == __NR_SCMP_ERROR)
        known = (int) given;
    if (known < 0)
        return 1;
    if (known >= CALLS_MOST || (given != UINT64_MAX && given != (uint64_t) known))
        return complain(place, err, "'%s' has the number %d here", row->name, known);
    row->call = (unsigned) known;
    return 0;
}

static int read_row(const struct place *place, char *text, struct table *table, error *err)
{
    if (table->rows == ROWS_MOST)
        return complain(place, err, "more than %d rows", ROWS_MOST);
    struct row *row = &table->row[table->rows];
    *row = (struct row){ .file = place->file, .line = place->line };

    char *why = strstr(text, " -- ");
    if (!why || strlen(why + 4) == 0 || strlen(why + 4) >= sizeof row->why)
        return complain(place, err, "a row ends in ' -- ' and a reason shorter than %zu bytes",
                        sizeof row->why);
    *why = '\0';
    (void) stpcpy(row->why, why + 4);

    char *rest = NULL;
    const char *name = strtok_r(text, " \t", &rest);
    if (!name || strlen(name) >= sizeof row->name)
        return complain(place, err, "a row begins with the name of a call");
    (void) stpcpy(row->name, name);
    if (read_action(place, row, &rest, err) < 0)
        return -1;
    int found = find_number(place, row, err);
    if (found < 0)
        return -1;
    if (found == 0)
        table->rows++;
    return 0;
}

/* Rows of the table that another one includes give way to its own rows for the same call. */
static void replace_rows(struct table *table, unsigned included)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < table->rows; i++) {
        bool replaced = false;
        for (unsigned own = included; i < included && own < table->rows; own++)
            replaced |= table->row[own].call == table->row[i].call;
        if (!replaced)
            table->row[kept++] = table->row[i];
    }
    table->rows = kept;
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
int read_table(const char *path, struct table *table, int depth, error *err)
{
    auto_file file = fopen(path, "re");
    if (!file)
        return fail_os(err, "open '%s'", path);
    unsigned included = table->rows;
    char line[1024];
    struct place place = { .file = path };
    while (fgets(line, sizeof line, file)) {
        place.line++;
        size_t length = strcspn(line, "\n");
        if (line[length] != '\n')
            return complain(&place, err, "the line is too long, or ends without a newline");
        line[length] = '\0';
        if (line[0] == '#' || strspn(line, " \t") == length)
            continue;
        if (strncmp(line, "include ", 8) == 0) {
            char beside[4096];
            const char *slash = strrchr(path, '/');
            int folder = slash ? (int) (slash - path + 1) : 0;
            (void) snprintf(beside, sizeof beside, "%.*s%s", folder, path, line + 8);
            if (depth > 0 || table->rows > 0)
                return complain(&place, err, "include stands first, and only in one table");
            /* Rows point to the name of their file: it lives as long as the program. */
            const char *name = strdup(beside); /* NOLINT(clang-analyzer-unix.Malloc): as said */
            if (!name || read_table(name, table, depth + 1, err) < 0)
                return under(err, "%s:%d", path, place.line);
            /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): rows keep it */
            included = table->rows;
            continue;
        }
        if (read_row(&place, line, table, err) < 0)
            return -1;
    }
    if (ferror(file))
        return fail_os(err, "read '%s'", path);
    replace_rows(table, included);
    return 0;
}
