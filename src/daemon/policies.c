/* policies.c - loaded once, before the daemon's walls close: no file is opened for a request. */
#include "daemon/policies.h"

#include "daemon/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct policy_row {
    char name[POLICY_NAME_SIZE];
    error failure; /* ERR_NONE: `policy` is sound */
    struct policy policy;
};

int policies_load(struct policies *policies, const char *path, error *err)
{
    static char names[POLICY_LIST_MOST][POLICY_NAME_SIZE];
    size_t count;
    if (policy_list(path, names, &count, err) < 0)
        return under(err, "policies in '%s'", path);
    policies->rows = calloc(count > 0 ? count : 1, sizeof *policies->rows);
    if (!policies->rows)
        return fail(err, ERR_SYSTEM, "no memory for %zu policies", count);
    for (size_t i = 0; i < count; i++) {
        struct policy_row *row = &policies->rows[policies->count++];
        memcpy(row->name, names[i], sizeof row->name);
        if (policy_load(path, names[i], &row->policy, &row->failure) < 0) {
            if (row->failure.code == ERR_NONE)
                row->failure.code = ERR_INTERNAL;
            log_event(LOG_WARNING, "policy.refused", TEXT("policy", row->name),
                      TEXT("cause", row->failure.text));
        } else {
            row->failure.code = ERR_NONE;
        }
    }
    return 0;
}

void policies_done(struct policies *policies)
{
    free(policies->rows);
    *policies = (struct policies){ 0 };
}

static void list_names(const struct policies *policies, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < policies->count && used < size; i++)
        used += (size_t) snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                  policies->rows[i].name);
}

int policies_find(const struct policies *policies, const char *name,
                  const struct policy **ret_policy, error *err)
{
    for (size_t i = 0; i < policies->count; i++) {
        const struct policy_row *row = &policies->rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (row->failure.code != ERR_NONE)
            return fail(err, ERR_UNAVAILABLE, "policy '%s' cannot be used: %s", name,
                        row->failure.text);
        *ret_policy = &row->policy;
        return 0;
    }
    char names[128];
    list_names(policies, names, sizeof names);
    return fail(err, ERR_NOT_FOUND, "no policy is named '%.60s'; there are: %s", name, names);
}

const struct policy *policies_at(const struct policies *policies, size_t index)
{
    if (index >= policies->count || policies->rows[index].failure.code != ERR_NONE)
        return NULL;
    return &policies->rows[index].policy;
}
