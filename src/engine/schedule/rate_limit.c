/* rate_limit.c - a token bucket, and sums for a day. */
#include "engine/schedule/rate_limit.h"

enum { MINUTE_MS = 60000, DAY_S = 86400 };

/* If the clock is set back no new day begins, and the sums go on. */
static void begin_day(struct rate *rate, int64_t wall_s)
{
    if (rate->day < wall_s / DAY_S)
        rate->cpu_ms = rate->log_bytes = 0;
    rate->day = wall_s / DAY_S;
}

static void fill(struct rate *rate, const struct rate_quota *quota, int64_t now_ms)
{
    double max = quota->runs_per_minute;
    if (rate->filled_ms == 0)
        rate->runs = max;
    else
        rate->runs += (double) (now_ms - rate->filled_ms) * max / MINUTE_MS;
    if (rate->runs > max)
        rate->runs = max;
    rate->filled_ms = now_ms;
}

enum rate_answer rate_ask_log(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                              uint32_t *ret_wait_s)
{
    begin_day(rate, wall_s);
    if (quota->log_bytes_per_day == 0 || rate->log_bytes < quota->log_bytes_per_day)
        return RATE_FREE;
    *ret_wait_s = (uint32_t) (DAY_S - wall_s % DAY_S);
    return RATE_LOG_USED_UP;
}

bool rate_day_is_over(struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
                      uint32_t *ret_wait_s)
{
    begin_day(rate, wall_s);
    *ret_wait_s = (uint32_t) (DAY_S - wall_s % DAY_S);
    return quota->cpu_seconds_per_day > 0 &&
           rate->cpu_ms >= UINT64_C(1000) * quota->cpu_seconds_per_day;
}

enum rate_answer rate_ask(struct rate *rate, const struct rate_quota *quota, int64_t now_ms,
                          int64_t wall_s, uint32_t *ret_wait_s)
{
    fill(rate, quota, now_ms);
    if (rate_ask_log(rate, quota, wall_s, ret_wait_s) != RATE_FREE)
        return RATE_LOG_USED_UP;
    if (rate_day_is_over(rate, quota, wall_s, ret_wait_s))
        return RATE_CPU_USED_UP;
    if (quota->runs_per_minute > 0 && rate->runs < 1) {
        *ret_wait_s = 1 + (uint32_t) ((1 - rate->runs) * 60 / quota->runs_per_minute);
        return RATE_RUNS_USED_UP;
    }
    return RATE_FREE;
}

void rate_take(struct rate *rate)
{
    rate->runs -= 1;
}

void rate_charge(struct rate *rate, uint64_t cpu_ms)
{
    rate->cpu_ms += cpu_ms;
}

void rate_charge_log(struct rate *rate, uint64_t bytes)
{
    rate->log_bytes += bytes;
}

void rate_look(const struct rate *rate, const struct rate_quota *quota, int64_t wall_s,
               struct rate_left *ret_left)
{
    uint64_t day_ms = UINT64_C(1000) * quota->cpu_seconds_per_day;
    uint64_t used_ms = rate->day < wall_s / DAY_S ? 0 : rate->cpu_ms;
    double runs = rate->runs > 0 ? rate->runs : 0;
    *ret_left = (struct rate_left){
        .runs = (uint32_t) runs,
        .cpu_s = used_ms < day_ms ? (day_ms - used_ms) / 1000 : 0,
        .cpu_reset_s = (uint32_t) (DAY_S - wall_s % DAY_S),
    };
    if (quota->runs_per_minute > 0)
        ret_left->runs_reset_s =
            (uint32_t) ((quota->runs_per_minute - runs) * 60 / quota->runs_per_minute + 0.999);
}
