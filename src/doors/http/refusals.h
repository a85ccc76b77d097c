/* refusals.h - delays refusals to a client that tries again at once after each: beyond a number per
 * second, refusals in a row on one connection are delayed, until a request there succeeds or it was
 * silent for a second. A client that is refused now and then is answered at once. The caller reads
 * the clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { REFUSED_SECOND_MS = 1000, REFUSED_ALL = 500, REFUSED_IN_A_ROW = 4, REFUSAL_HELD_MS = 250 };

/* Of all connections. */
struct refusals {
    int64_t since_ms; /* when the current second began */
    unsigned count;   /* refusals in it */
    bool were_many;   /* in the second before */
};

/* Of one connection, in a row. */
struct refused {
    int64_t last_ms;
    unsigned count;
};

/* Counts a refusal. Returns whether to delay it. */
static inline bool refusal_waits(struct refusals *all, struct refused *own, int64_t now_ms)
{
    if (now_ms - all->since_ms >= REFUSED_SECOND_MS) {
        all->were_many =
            all->count > REFUSED_ALL && now_ms - all->since_ms < INT64_C(2) * REFUSED_SECOND_MS;
        all->since_ms = now_ms;
        all->count = 0;
    }
    if (now_ms - own->last_ms >= REFUSED_SECOND_MS)
        own->count = 0;
    own->last_ms = now_ms;
    own->count++;
    all->count++;
    return own->count > REFUSED_IN_A_ROW && (all->were_many || all->count > REFUSED_ALL);
}
