/* rate_limit.h - how much a key may still use: runs by the minute, processor time by the day (UTC).
 *
 * Runs come out of a bucket that holds a minute's worth and fills steadily, so that a burst is
 * possible and the mean is held. A quota of 0 is none. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct rate_quota {
    uint32_t runs_per_minute;
    uint32_t cpu_seconds_per_day;
    uint64_t log_bytes_per_day;
};

struct rate {
    double runs; /* in the bucket */
    int64_t filled_ms;
    int64_t day; /* since 1970 */
    uint64_t cpu_ms;
    uint64_t log_bytes; /* of the log of receipts */
};

/* What is left, as it is reported to callers. */
struct rate_left {
    uint32_t runs, runs_reset_s; /* runs at once; seconds until the bucket is full */
    uint64_t cpu_s;              /* today */
    uint32_t cpu_reset_s;
};

enum rate_answer { RATE_FREE, RATE_RUNS_USED_UP, RATE_CPU_USED_UP, RATE_LOG_USED_UP };

/* May one more run begin? Moves the clock on: `now_ms` never jumps, `wall_s` counts since 1970.
 * Gives  *ret_wait_s, when to ask again, if not. */
enum rate_answer rate_ask(struct rate *rate, const struct rate_quota *quota, int64_t now_ms,
                          int64_t wall_s, uint32_t *ret_wait_s);

/* Is the processor time of this day used up? Moves the day on. */
bool rate_day_is_over(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                      uint32_t *ret_wait_s);

/* It begins; and what it has used at its end. */
void rate_take(struct rate *rate);
void rate_charge(struct rate *rate, uint64_t cpu_ms);
void rate_charge_log(struct rate *rate, uint64_t bytes);

/* The same as rate_ask(), of the log alone: for what is no run and leaves records, too. */
enum rate_answer rate_ask_log(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                              uint32_t *ret_wait_s);

void rate_look(const struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
               struct rate_left *ret_left);
