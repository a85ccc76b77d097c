/* loop_share.h - whose request is next when several keys have requests for the event loop.
 *
 * Each key has a clock that shows the time that the loop has spent on its requests; the key whose
 * clock shows least goes first. A request is charged when it begins, with what requests of this key
 * have taken of late, and put right when its time is known. A key that asks for nothing saves
 * nothing up. (Start-time fair queueing, as fair_share.h, which is for processor time of runs.)
 * Pure: the clock is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LOOP_SHARE_MIN_US = 100 /* what a request costs outside of its handler */ };

struct loop_share {
    int64_t clock_us;
    int64_t usual_us; /* of one request, a running mean */
};

/* A request of this key is there. `now_us`: the clock of the one that began last. */
static inline void loop_share_asks(struct loop_share *share, int64_t now_us)
{
    if (share->clock_us < now_us)
        share->clock_us = now_us;
}

static inline bool loop_share_is_before(const struct loop_share *share,
                                        const struct loop_share *other)
{
    return share->clock_us < other->clock_us;
}

/* It begins. Gives  what it was charged; *now_us is put forward. */
static inline int64_t loop_share_begins(struct loop_share *share, int64_t *now_us)
{
    int64_t charged_us = share->usual_us > 0 ? share->usual_us : LOOP_SHARE_MIN_US;
    *now_us = share->clock_us;
    share->clock_us += charged_us;
    return charged_us;
}

/* Its handler has taken so long: instead of what it was charged. */
static inline void loop_share_used(struct loop_share *share, int64_t charged_us, int64_t used_us)
{
    used_us += LOOP_SHARE_MIN_US;
    share->clock_us += used_us - charged_us;
    share->usual_us = share->usual_us > 0 ? (share->usual_us * 7 + used_us) / 8 : used_us;
}
