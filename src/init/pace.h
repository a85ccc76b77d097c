/* pace.h - limits how often a sandbox's programs make its init work, by refused calls and messages
 * of interpreters. init's control group has a higher processor weight than every sandbox, and its
 * time is charged to no sandbox: without a limit, a program could take that time from others. A
 * program that asks more often waits; orders of gloveboxd never do. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Each takes some 15 us: at most 3 % of a processor. */
enum { PACE_AT_ONCE = 10000, PACE_A_SECOND = 2000, PACE_STEP_MS = 5 };

struct pace {
    uint32_t used; /* of PACE_AT_ONCE; falls with time */
    int64_t at_ms; /* when it fell last; 0: never */
};

static inline void pace_use(struct pace *pace)
{
    pace->used += pace->used < UINT32_MAX;
}

/* Must the next one wait? The caller reads the clock only if so. */
static inline bool pace_is_spent(const struct pace *pace)
{
    return pace->used >= PACE_AT_ONCE;
}

static inline void pace_falls(struct pace *pace, int64_t now_ms)
{
    int64_t steps = pace->at_ms == 0 ? 1 : (now_ms - pace->at_ms) / PACE_STEP_MS;
    int64_t due = steps * (PACE_A_SECOND * PACE_STEP_MS / 1000);
    if (steps <= 0)
        return;
    pace->used -= due < pace->used ? (uint32_t) due : pace->used;
    pace->at_ms = now_ms;
}
