/* metrics.h - numbers for an operator, in the text format of Prometheus 0.0.4.
 *
 * Each process has one registry, of global counters. The families are the rows of metrics.def; the
 * values of a label are a list of words known in advance, so that no request can make the registry
 * grow. */
#pragma once

#include "base/bytes.h"

#include <stdint.h>

enum metric {
#define METRIC(name, ...) METRIC_##name,
#include "engine/observe/metrics.def"
    METRICS
};

enum denial_reason {
#define DENIAL(name, ...) DENIAL_##name,
#include "engine/observe/denial_reasons.def"
    DENIAL_REASONS
};

const char *denial_layer(unsigned reason);

/* `label` is the index of its word: enum run_status, run_start, limit_id, denial_reason; 0 and 1
 * for stdout and stderr; the first digit of an HTTP status; 0 if there is no label. */
void metric_add(enum metric metric, unsigned label, uint64_t amount);
void metric_set(enum metric metric, unsigned label, uint64_t value);
void metric_observe(enum metric metric, unsigned label, int64_t time_us);

/* Writes all families except those whose labels are not known in advance (a rule, a policy, a key).
 * The code that counts those writes them: the head, then each value with its labels,
 * `rule="a",policy="b"`. */
void metrics_write(struct bytes *out);
void metric_write_head(enum metric metric, struct bytes *out); /* # HELP, # TYPE */
void metric_write_value(enum metric metric, const char *label_text, uint64_t value,
                        struct bytes *out);
const char *metric_name(enum metric metric);

struct run;
void metrics_run_ended(const struct run *run); /* run_metrics.c */
