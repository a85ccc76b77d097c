/* policies.c - policies are loaded at the start, before the daemon's own filter, and on reload: no
 * file is opened for a request. */
#include "engine/catalog/policies.h"

#include "base/text.h"
#include "base/timestamp.h"
#include "engine/observe/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct policy_row {
    char name[POLICY_NAME_SIZE];
    error failure; /* ERR_NONE: `policy` is valid */
    struct policy policy;
    struct policy_row *next; /* in the list of replaced ones */
};

static void rows_free(struct policy_row **rows, size_t count)
{
    for (size_t i = 0; rows && i < count; i++)
        free(rows[i]);
    free((void *) rows);
}

static void read_row(const char *path, struct policy_row *row)
{
    if (policy_load(path, row->name, &row->policy, &row->failure) == 0)
        row->failure.code = ERR_NONE;
    else if (row->failure.code == ERR_NONE)
        row->failure.code = ERR_INTERNAL;
}

static bool is_passing(int os)
{
    return os != 0 && os != ENOENT && os != ELOOP;
}

/* A lack of memory or descriptors may be over in a moment, and a file that was just written may
 * become readable; a mistake in a file remains. */
static void read_row_again(const char *path, struct policy_row *row, unsigned *tries)
{
    enum { PAUSE_MS = 50 };
    for (; *tries > 0 && row->failure.code && is_passing(row->failure.os); --*tries) {
        (void) poll(NULL, 0, PAUSE_MS);
        read_row(path, row);
    }
}

/* Gives  an array of rows, each on the heap. */
static int read_rows(const char *path, struct policy_row ***ret_rows, size_t *ret_count, error *err)
{
    static char names[POLICY_LIST_MAX][POLICY_NAME_SIZE];
    size_t count;
    if (policy_list(path, names, &count, err) < 0)
        return under(err, "policies in '%s'", path);
    struct policy_row **rows =
        (struct policy_row **) calloc(count + 1, sizeof(struct policy_row *));
    for (size_t i = 0; rows && i < count; i++) {
        struct policy_row *row = rows[i] = calloc(1, sizeof *row);
        if (!row)
            break;
        memcpy(row->name, names[i], sizeof row->name);
        read_row(path, row);
    }
    if (!rows || (count > 0 && !rows[count - 1])) {
        rows_free(rows, count);
        return fail(err, ERR_SYSTEM, "no memory for %zu policies", count);
    }
    *ret_rows = rows;
    *ret_count = count;
    return 0;
}

int policies_load(struct policies *policies, const char *path, error *err)
{
    if (read_rows(path, &policies->rows, &policies->count, err) < 0)
        return -1;
    unsigned tries = 30; /* for all policies: gloveboxd does not serve meanwhile */
    for (size_t i = 0; i < policies->count; i++) {
        struct policy_row *row = policies->rows[i];
        read_row_again(path, row, &tries);
        if (row->failure.code != ERR_NONE)
            log_event(POLICY_REFUSED, TEXT("policy", row->name), TEXT("cause", row->failure.text));
    }
    return 0;
}

static struct policy_row **find_row(const struct policies *policies, const char *name)
{
    for (size_t i = 0; i < policies->count; i++)
        if (policies->rows[i] && strcmp(policies->rows[i]->name, name) == 0)
            return &policies->rows[i];
    return NULL;
}

static void note(char *text, size_t size, const char *name, const char *what)
{
    size_t used = strlen(text);
    if (used < size)
        (void) snprintf(text + used, size - used, "%s%s %s", used > 0 ? ", " : "", name, what);
}

static void retire(struct policies *policies, struct policy_row *row)
{
    row->next = policies->retired;
    policies->retired = row;
}

int policies_reload(struct policies *policies, const char *path, char *text, size_t size,
                    error *err)
{
    struct policies fresh = { 0 };
    text[0] = '\0';
    if (read_rows(path, &fresh.rows, &fresh.count, err) < 0)
        return -1;
    for (size_t i = 0; i < fresh.count; i++)
        if (fresh.rows[i]->failure.code != ERR_NONE) {
            *err = fresh.rows[i]->failure; /* it names the file */
            rows_free(fresh.rows, fresh.count);
            return -1;
        }
    for (size_t i = 0; i < fresh.count; i++) {
        struct policy_row **old = find_row(policies, fresh.rows[i]->name);
        if (!old) {
            note(text, size, fresh.rows[i]->name, "added");
        } else if ((*old)->failure.code == ERR_NONE &&
                   strcmp((*old)->policy.digest, fresh.rows[i]->policy.digest) == 0) {
            struct policy_row *same = *old;
            *old = fresh.rows[i]; /* the old one is freed with the array below */
            fresh.rows[i] = same;
        } else {
            note(text, size, fresh.rows[i]->name, "changed");
            retire(policies, *old);
            *old = NULL;
        }
    }
    for (size_t i = 0; i < policies->count; i++) {
        struct policy_row *old = policies->rows[i];
        if (old && !find_row(&fresh, old->name)) {
            note(text, size, old->name, "removed");
            retire(policies, old);
            policies->rows[i] = NULL;
        }
    }
    rows_free(policies->rows, policies->count);
    policies->rows = fresh.rows;
    policies->count = fresh.count;
    policies->reloads++; /* also for other changes, such as the default policy */
    return 0;
}

void policies_each_fault(const struct policies *policies,
                         void (*each)(void *context, const char *text), void *context)
{
    char text[sizeof(error) + 160];
    if (policies->refused.at_ms > 0) {
        char moment[TIMESTAMP_SIZE];
        (void) snprintf(text, sizeof text, "the reload at %s was refused and changed nothing: %s",
                        timestamp_write(policies->refused.at_ms, moment),
                        policies->refused.cause.text);
        each(context, text);
    }
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy_row *row = policies->rows[i];
        if (row->failure.code == ERR_NONE)
            continue;
        (void) snprintf(text, sizeof text, "policy '%s' cannot be used: %s", row->name,
                        row->failure.text);
        each(context, text);
    }
}

void policies_done(struct policies *policies)
{
    for (struct policy_row *row = policies->retired, *next; row; row = next) {
        next = row->next;
        free(row);
    }
    rows_free(policies->rows, policies->count);
    *policies = (struct policies){ 0 };
}

int policies_find(const struct policies *policies, const char *name,
                  const struct policy **ret_policy, error *err)
{
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy_row *row = policies->rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (row->failure.code != ERR_NONE)
            return fail(err, ERR_UNAVAILABLE, "policy '%s' cannot be used: %s", name,
                        row->failure.text);
        *ret_policy = &row->policy;
        return 0;
    }
    char names[256] = "";
    for (size_t i = 0; i < policies->count; i++)
        if (!text_list(names, sizeof names, policies->rows[i]->name))
            break;
    return fail(err, ERR_NOT_FOUND, "no policy is named '%.60s'; there are: %s", name, names);
}

const struct policy *policies_at(const struct policies *policies, size_t index)
{
    if (index >= policies->count || policies->rows[index]->failure.code != ERR_NONE)
        return NULL;
    return &policies->rows[index]->policy;
}
