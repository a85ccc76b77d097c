/* metrics_limits.c - see metrics_limits.h. A policy gets a row when a run of it first reaches a
 * limit. */
#include "engine/observe/metrics_limits.h"

#include "engine/observe/metrics.h"
#include "policy/policy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static struct row {
    char policy[POLICY_NAME_SIZE];
    uint64_t hits[LIMITS], ends[LIMITS];
} table[POLICY_LIST_MAX];
static size_t count;

static struct row *row_of(const char *policy)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i].policy, policy) == 0)
            return &table[i];
    if (count == POLICY_LIST_MAX)
        return NULL; /* after many reloads; glovebox_limit_hits_total still counts */
    (void) snprintf(table[count].policy, sizeof table[count].policy, "%s", policy);
    return &table[count++];
}

void limit_counts_add(const char *policy, enum limit_id limit, bool has_ended)
{
    struct row *row = row_of(policy);
    if (!row)
        return;
    row->hits[limit]++;
    row->ends[limit] += has_ended;
}

static void write_family(enum metric metric, bool is_ends, struct bytes *out)
{
    metric_write_head(metric, out);
    for (const struct row *row = table; row < table + count; row++)
        for (enum limit_id limit = 0; limit < LIMITS; limit++)
            if (row->hits[limit] > 0)
                bytes_print(out, "%s{policy=\"%s\",limit=\"%s\"} %" PRIu64 "\n",
                            metric_name(metric), row->policy, limit_rows[limit].name,
                            is_ends ? row->ends[limit] : row->hits[limit]);
}

void limit_counts_write(struct bytes *out)
{
    write_family(METRIC_POLICY_HITS, false, out);
    write_family(METRIC_POLICY_ENDS, true, out);
}
