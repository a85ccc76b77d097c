/* rate_limit.h - how much a key may still use: runs per minute, processor time per day (UTC).
 *
 * Runs are taken from a token bucket that holds a minute's worth and fills steadily: it allows a
 * burst and keeps the mean. A quota of 0 means no limit. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate_quota {
    uint32_t runs_per_minute;
    uint32_t cpu_seconds_per_day;
    uint64_t log_bytes_per_day;
};

struct rate {
    double runs; /* left in the bucket */
    int64_t filled_ms;
    int64_t day; /* since 1970 */
    uint64_t cpu_ms;
    uint64_t log_bytes; /* written to the log of receipts today */
};

/* What is left, as reported to callers. */
struct rate_left {
    uint32_t runs, runs_reset_s; /* runs at once; seconds until the bucket is full */
    uint64_t cpu_s;              /* today */
    uint32_t cpu_reset_s;
};

enum rate_answer { RATE_FREE, RATE_RUNS_USED_UP, RATE_CPU_USED_UP, RATE_LOG_USED_UP };

/* May one more run begin? Updates the bucket: `now_ms` is monotonic, `wall_s` counts from 1970. If
 * not, gives  *ret_wait_s, when to ask again. */
enum rate_answer rate_ask(struct rate *rate, const struct rate_quota *quota, int64_t now_ms,
                          int64_t wall_s, uint32_t *ret_wait_s);

/* Is the processor time of this day used up? Begins a new day if needed. */
bool rate_day_is_over(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                      uint32_t *ret_wait_s);

/* A run begins; a run has ended, with what it used. */
void rate_take(struct rate *rate);
void rate_charge(struct rate *rate, uint64_t cpu_ms);
void rate_charge_log(struct rate *rate, uint64_t bytes);

/* As rate_ask(), for the log only: for what is not a run and writes records. */
enum rate_answer rate_ask_log(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                              uint32_t *ret_wait_s);

void rate_look(const struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
               struct rate_left *ret_left);
