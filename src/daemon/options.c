/* options.c - see options.h: a table of the options, by what their value is. */
#include "daemon/options.h"

#include "base/table.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Exactly one pointer is set: it gives the type of the value and where it is stored. */
struct option_row {
    const char *name;
    bool *flag; /* takes no value */
    int *descriptor;
    struct sockets *sockets; /* may be given several times */
    const char **text;
    int (*take)(struct options *options, char *value, error *err);
};

struct option_table {
    const struct option_row *rows;
    size_t count;
};

static int read_fd(const char *text, int *ret_fd, error *err)
{
    char *end;
    errno = 0;
    long value = strtol(text, &end, 10);
    if (*text < '0' || *text > '9' || *end != '\0' || errno != 0 || value > INT_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' is no descriptor", text);
    *ret_fd = (int) value;
    return 0;
}

static int add_socket(const char *text, struct sockets *sockets, error *err)
{
    if (sockets->count == SOCKETS_MAX)
        return fail(err, ERR_BAD_REQUEST, "more than %d sockets", SOCKETS_MAX);
    return read_fd(text, &sockets->list[sockets->count++], err);
}

/* NAME=FD of a seccomp table that the spawner loads. */
static int add_filter(struct options *options, char *value, error *err)
{
    struct receipts_settings *receipts = &options->receipts;
    char *equals = strchr(value, '=');
    if (!equals || receipts->filter_count == FILTERS_MAX)
        return fail(err, ERR_BAD_REQUEST, "'%s' is no NAME=FD of a filter, or one too many", value);
    *equals = '\0';
    receipts->filter_names[receipts->filter_count] = value;
    return read_fd(equals + 1, &receipts->filters[receipts->filter_count++], err);
}

static int take_owner(struct options *options, char *value, error *err)
{
    (void) err;
    options->owner = (unsigned) strtoul(value, NULL, 10);
    return 0;
}

static int take_value(struct options *options, const struct option_row *row, char *value,
                      error *err)
{
    if (row->descriptor)
        return read_fd(value, row->descriptor, err);
    if (row->sockets)
        return add_socket(value, row->sockets, err);
    if (row->take)
        return row->take(options, value, err);
    if (row->text)
        *row->text = value;
    return 0;
}

static const struct option_row *find_row(const struct option_table *table, const char *name)
{
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

static int read_words(int count, char **words, struct options *options,
                      const struct option_table *table, error *err)
{
    for (int i = 1; i < count; i++) {
        const struct option_row *row = find_row(table, words[i]);
        if (row && row->flag) {
            *row->flag = true;
            continue;
        }
        if (i + 1 == count)
            return fail(err, ERR_BAD_REQUEST, "'%s' lacks its value", words[i]);
        if (!row)
            return fail(err, ERR_BAD_REQUEST, "unknown option '%s'", words[i]);
        if (take_value(options, row, words[++i], err) < 0)
            return -1;
    }
    return 0;
}

int options_read(int count, char **words, struct options *options, error *err)
{
    const struct option_row rows[] = {
        { "--private", .flag = &options->is_private },
        { "--warm", .flag = &options->is_warm },
        { "--webhook", .flag = &options->has_webhook },
        { "--verbose", .flag = &options->is_verbose },
        { "--spawner", .descriptor = &options->spawner },
        { "--egress", .descriptor = &options->egress },
        { "--notify", .descriptor = &options->notify },
        { "--control", .descriptor = &options->control },
        { "--connection", .sockets = &options->connections },
        { "--listen-fd", .sockets = &options->listens },
        { "--policies", .text = &options->policies },
        { "--settings", .text = &options->values },
        { "--state", .text = &options->state },
        { "--filter", .take = add_filter },
        { "--owner", .take = take_owner },
        { "--templates", .text = &options->templates },
        { "--first-template", .text = &options->first_template },
    };
    const struct option_table table = { rows, COUNT_OF(rows) };
    if (read_words(count, words, options, &table, err) < 0)
        return -1;
    if (options->spawner < 0 || !options->policies || !options->templates)
        return fail(err, ERR_BAD_REQUEST, "--spawner, --policies and --templates must be given");
    return 0;
}
