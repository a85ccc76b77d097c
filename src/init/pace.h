/* pace.h - how often a sandbox's programs may make its init work: refused calls and words of
 * interpreters. init stands in a group that comes before every sandbox, so that what it does for a
 * program at the program's own will would come before the others, and would be charged to no
 * sandbox. A caller that asks more often waits until the next is due; orders of gloveboxd never do.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Some 15 us each: 3 % of a processor, for a program that never stops. */
enum { PACE_AT_ONCE = 10000, PACE_A_SECOND = 2000, PACE_STEP_MS = 5 };

struct pace {
    uint32_t used; /* of those at once; falls with time */
    int64_t at_ms; /* when it has fallen last; 0: never */
};

static inline void pace_use(struct pace *pace)
{
    pace->used += pace->used < UINT32_MAX;
}

/* Is the next one due? The caller's clock is read only if it has to be. */
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
