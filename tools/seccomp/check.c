/* precheck.c - what a table must be before it is worth compiling, and arguments that reach each of
 * its rows. */
#include "table.h"

#include <seccomp.h>
#include <stdlib.h>

static bool holds(const struct test *test, const uint64_t *arguments)
{
    uint64_t found = arguments[test->argument] & test->mask;
    return (found == test->value) == test->equal;
}

static const struct row *first_match(const struct row *rows, const uint64_t *arguments)
{
    for (const struct row *row = rows;; row++) {
        bool all = true;
        for (unsigned i = 0; i < row->tests; i++)
            all = all && holds(&row->test[i], arguments);
        if (all)
            return row;
    }
}

/* Arguments that reach `row`, of the call whose rows begin at `first`. What is not tested is all
 * ones: no descriptor, no address, no size. The high half stays all ones, so that a filter which
 * looks at it shows. Rows above that would take the arguments are turned away one by one, by a bit
 * of their last test. */
int reach_row(const struct row *first, const struct row *row, uint64_t *ret_arguments)
{
    for (int i = 0; i < 6; i++)
        ret_arguments[i] = UINT64_MAX;
    for (int attempt = 0; attempt < 64; attempt++) {
        for (unsigned i = 0; i < row->tests; i++) {
            const struct test *test = &row->test[i];
            uint64_t *argument = &ret_arguments[test->argument];
            if (test->equal)
                *argument = (*argument & ~test->mask) | test->value;
            else if (!holds(test, ret_arguments))
                *argument ^= test->mask & -test->mask;
        }
        const struct row *found = first_match(first, ret_arguments);
        if (found == row)
            return 0;
        if (found > row)
            return -1;
        const struct test *last = &found->test[found->tests - 1];
        uint64_t *argument = &ret_arguments[last->argument];
        if (last->equal)
            *argument ^= last->mask & -last->mask;
        else
            *argument = (*argument & ~last->mask) | last->value;
    }
    return -1;
}

static int compare_rows(const void *left, const void *right)
{
    const struct row *a = left, *b = right;
    if (a->call != b->call)
        return a->call < b->call ? -1 : 1;
    return a->line < b->line ? -1 : 1;
}

/* Every call is decided, once, and by rows that can all be reached. */
int check_table(struct table *table, error *err)
{
    if (table->rows == 0)
        return fail(err, ERR_BAD_REQUEST, "the table has no row");
    for (unsigned i = 1; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        for (unsigned before = 0; before + 1 < i; before++)
            if (table->row[before].call == row->call && table->row[i - 1].call != row->call)
                return complain(row, err, "the rows of '%s' do not stand together", row->name);
    }
    qsort(table->row, table->rows, sizeof table->row[0], compare_rows);

    const struct row *first = &table->row[0];
    unsigned next = 0;
    for (unsigned i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (i > 0 && row->call != row[-1].call)
            first = row;
        bool last = i + 1 == table->rows || row[1].call != row->call;
        if (last != (row->tests == 0))
            return complain(row, err, "'%s': the last row, and only it, has no test", row->name);
    }
    for (unsigned i = 0; i < table->rows; i++) {
        const struct row *row = &table->row[i];
        if (i > 0 && row->call != row[-1].call)
            /* NOLINTNEXTLINE(bugprone-branch-clone): the reasons differ */
            first = row;
        else if (i == 0)
            first = row;
        uint64_t arguments[6];
        if (reach_row(first, row, arguments) < 0)
            return complain(row, err, "'%s': the rows above leave nothing for this one", row->name);
        for (; next < row->call; next++) {
            char *missing = seccomp_syscall_resolve_num_arch(seccomp_arch_native(), (int) next);
            if (missing) {
                int result = complain(row, err, "no row decides '%s' (%u)", missing, next);
                free(missing);
                return result;
            }
        }
        next = row->call + 1;
    }
    return 0;
}
