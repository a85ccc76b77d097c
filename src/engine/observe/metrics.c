/* metrics.c - the registry: a row of numbers for each family, and how they are printed. */
#include "engine/observe/metrics.h"

#include "contract/egress.h"
#include "contract/notify.h"
#include "engine/observe/loop_monitor.h"
#include "model/limits.h"
#include "model/outcome.h"

#include <inttypes.h>
#include <stdio.h>

enum { LABELS_MAX = 40, BUCKETS = 16 };

enum kind { COUNTER, TIME, GAUGE, HISTOGRAM };

/* --- labels ----------------------------------------------------------------------------------- */

static const char *word_of_status(unsigned index)
{
    return outcome_status_name(index);
}

static const char *word_of_limit(unsigned index)
{
    return limit_rows[index].name;
}

static const char *const starts[] = {
    [START_BUILT] = "built", [START_PARKED] = "parked", [START_SESSION] = "session"
};

static const struct {
    const char *layer, *reason;
} denials[] = {
#define DENIAL(name, layer, reason, ...) [DENIAL_##name] = { layer, reason },
#include "engine/observe/denial_reasons.def"
};

const char *denial_layer(unsigned reason)
{
    return denials[reason].layer;
}

static const char *reason_of_denial(unsigned reason)
{
    return denials[reason].reason;
}

static const char *const streams[] = { "stdout", "stderr" };
static const char *const classes[] = { "none", "1xx", "2xx", "3xx", "4xx", "5xx" };

/* The values of X-Glovebox-Reason. */
static const char *const reasons[] = {
    [EGRESS_ALLOWED] = "ALLOWED",
#define REASON(name, ...) [EGRESS_##name] = #name,
#include "contract/egress_reasons.def"
};

static const char *const directions[] = { "sent", "received" };
static const char *const ends[] = { [NOTIFY_DELIVERED] = "delivered",
                                    [NOTIFY_FAILED] = "failed",
                                    [NOTIFY_GAVE_UP] = "gave_up",
                                    [NOTIFY_DROPPED] = "dropped",
                                    [NOTIFY_LOST] = "lost" };
static const char *const verdicts[] = { [OUTPUT_CHECK_ERROR] = "error",
                                        [OUTPUT_CHECK_FAILED] = "failed",
                                        [OUTPUT_CHECK_PASSED] = "passed" };

/* In the order of enum session_state. */
static const char *const states[] = { "starting", "running", "paused" };

/* clang-format off */
enum label { NONE, STATUS, START, LIMIT, DENIAL, STREAM, CLASS, REASON, DIRECTION, TOLD, VERDICT, CAUSE,
             RULE, POLICY_LIMIT, SESSION, KEY, IMPORT };

static const struct labels {
    const char *name;
    unsigned count;
    const char *(*word)(unsigned index); /* in place of `words` */
    const char *const *words;
    const char *(*reason)(unsigned index); /* a second label, `reason` */
} labels[] = {
    [NONE]   = { NULL,     1,               NULL },
    [STATUS] = { "status", RUN_STATUSES,    word_of_status },
    [START]  = { "start",  START_KINDS,     .words = starts },
    [LIMIT]  = { "limit",  LIMITS,          word_of_limit },
    [DENIAL] = { "layer",  DENIAL_REASONS,  denial_layer, .reason = reason_of_denial },
    [STREAM] = { "stream", 2,               .words = streams },
    [CLASS]  = { "class",  6,               .words = classes },
    [REASON] = { "reason", EGRESS_REASONS,  .words = reasons },
    [DIRECTION] = { "direction", 2,         .words = directions },
    [TOLD]   = { "end",    NOTIFY_ENDS,     .words = ends },
    [VERDICT] = { "verdict", OUTPUT_CHECK_VERDICTS, .words = verdicts },
    [CAUSE]  = { "cause", LOOP_CAUSES,      loop_cause_name },
    [RULE]   = { "rule",   1,               NULL }, /* counted by traffic_stats.c */
    [POLICY_LIMIT] = { "policy", 1,         NULL }, /* counted by metrics_limits.c */
    [SESSION] = { "state", 3,               .words = states },
    [KEY]    = { "key",    1,               NULL }, /* counted by accounts.c, written by service_metrics.c */
    [IMPORT] = { "template", 1,             NULL }, /* counted by import_counts.c */
};
/* clang-format on */

_Static_assert((int) EGRESS_REASONS <= (int) LABELS_MAX && (int) LIMITS <= (int) LABELS_MAX &&
                   (int) RUN_STATUSES <= (int) LABELS_MAX &&
                   (int) DENIAL_REASONS <= (int) LABELS_MAX,
               "every word of a label has its place");

/* --- families --------------------------------------------------------------------------------- */

static const struct family {
    const char *name;
    enum kind kind;
    enum label label;
    const char *help;
} families[METRICS] = {
#define METRIC(id, name, kind, label, help) [METRIC_##id] = { name, kind, label, help },
#include "engine/observe/metrics.def"
};

static const int64_t bounds_us[BUCKETS] = { 500,     1000,     2500,     5000,    10000,   25000,
                                            50000,   100000,   250000,   500000,  1000000, 2500000,
                                            5000000, 10000000, 30000000, 60000000 };

static struct cell {
    uint64_t value; /* of a histogram: the number of observations */
    uint64_t sum_us;
    uint64_t buckets[BUCKETS]; /* not cumulative */
} cells[METRICS][LABELS_MAX];

static struct cell *cell_of(enum metric metric, unsigned label)
{
    unsigned count = labels[families[metric].label].count;
    return &cells[metric][label < count ? label : count - 1];
}

void metric_add(enum metric metric, unsigned label, uint64_t amount)
{
    cell_of(metric, label)->value += amount;
}

void metric_set(enum metric metric, unsigned label, uint64_t value)
{
    cell_of(metric, label)->value = value;
}

void metric_observe(enum metric metric, unsigned label, int64_t time_us)
{
    struct cell *cell = cell_of(metric, label);
    cell->value++;
    cell->sum_us += time_us > 0 ? (uint64_t) time_us : 0;
    for (size_t i = 0; i < BUCKETS; i++)
        if (time_us <= bounds_us[i]) {
            cell->buckets[i]++;
            return;
        }
}

/* --- text ------------------------------------------------------------------------------------- */

static void print_label(const struct labels *label, unsigned index, const char *more,
                        struct bytes *out)
{
    if (!label->name && !*more)
        return;
    bytes_add_text(out, "{");
    if (label->name)
        bytes_print(out, "%s=\"%s\"", label->name,
                    label->word ? label->word(index) : label->words[index]);
    if (label->reason)
        bytes_print(out, ",reason=\"%s\"", label->reason(index));
    bytes_add_text(out, label->name && *more ? "," : "");
    bytes_print(out, "%s}", more);
}

static void print_seconds(uint64_t time_us, struct bytes *out)
{
    bytes_print(out, "%" PRIu64 ".%06" PRIu64, time_us / 1000000, time_us % 1000000);
}

static void print_histogram(const struct family *family, unsigned index, const struct cell *cell,
                            struct bytes *out)
{
    const struct labels *label = &labels[family->label];
    uint64_t count = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        char more[40];
        int64_t bound = bounds_us[i];
        (void) snprintf(more, sizeof more, "le=\"%" PRId64 ".%04" PRId64 "\"", bound / 1000000,
                        bound % 1000000 / 100);
        count += cell->buckets[i];
        bytes_print(out, "%s_bucket", family->name);
        print_label(label, index, more, out);
        bytes_print(out, " %" PRIu64 "\n", count);
    }
    bytes_print(out, "%s_bucket", family->name);
    print_label(label, index, "le=\"+Inf\"", out);
    bytes_print(out, " %" PRIu64 "\n%s_sum", cell->value, family->name);
    print_label(label, index, "", out);
    bytes_add_text(out, " ");
    print_seconds(cell->sum_us, out);
    bytes_print(out, "\n%s_count", family->name);
    print_label(label, index, "", out);
    bytes_print(out, " %" PRIu64 "\n", cell->value);
}

void metric_write_head(enum metric metric, struct bytes *out)
{
    static const char *const kinds[] = {
        [COUNTER] = "counter", [TIME] = "counter", [GAUGE] = "gauge", [HISTOGRAM] = "histogram"
    };
    const struct family *family = &families[metric];
    bytes_print(out, "# HELP %s %s\n# TYPE %s %s\n", family->name, family->help, family->name,
                kinds[family->kind]);
}

const char *metric_name(enum metric metric)
{
    return families[metric].name;
}

static void print_value(const struct family *family, const struct cell *cell, struct bytes *out)
{
    bytes_add_text(out, " ");
    if (family->kind == TIME)
        print_seconds(cell->value, out);
    else
        bytes_print(out, "%" PRIu64, cell->value);
    bytes_add_text(out, "\n");
}

void metric_write_value(enum metric metric, const char *label_text, uint64_t value,
                        struct bytes *out)
{
    const struct cell cell = { .value = value };
    bytes_print(out, "%s{%s}", families[metric].name, label_text);
    print_value(&families[metric], &cell, out);
}

void metrics_write(struct bytes *out)
{
    for (enum metric metric = 0; metric < METRICS; metric++) {
        const struct family *family = &families[metric];
        const struct labels *label = &labels[family->label];
        if (label->name && !label->word && !label->words)
            continue; /* written by the code that counts them */
        metric_write_head(metric, out);
        for (unsigned i = 0; i < label->count; i++) {
            if (family->kind == HISTOGRAM) {
                print_histogram(family, i, &cells[metric][i], out);
                continue;
            }
            bytes_add_text(out, family->name);
            print_label(label, i, "", out);
            print_value(family, &cells[metric][i], out);
        }
    }
}
