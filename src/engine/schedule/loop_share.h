/* loop_share.h - whose request is next when several keys have requests for the event loop.
 *
 * Each key has a clock that shows the time that the loop has spent on its requests; the key with
 * the lowest clock is next. A request is charged with the recent mean of its key when it begins,
 * and with the difference when its time is known. Unused time is not saved. (Start-time fair
 * queueing, as in fair_share.h, which is for processor time of runs.) Pure: the caller reads the
 * clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

enum { LOOP_SHARE_MIN_US = 100 /* the cost of a request outside its handler */ };

struct loop_share {
    int64_t clock_us;
    int64_t usual_us; /* of one request, a running mean */
};

/* A request of this key has come. `now_us`: the clock of the key whose request began last. */
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

/* A request begins. Gives  its charge, and sets *now_us. */
static inline int64_t loop_share_begins(struct loop_share *share, int64_t *now_us)
{
    int64_t charged_us = share->usual_us > 0 ? share->usual_us : LOOP_SHARE_MIN_US;
    *now_us = share->clock_us;
    share->clock_us += charged_us;
    return charged_us;
}

/* A request took used_us in its handler; replaces its charge. */
static inline void loop_share_used(struct loop_share *share, int64_t charged_us, int64_t used_us)
{
    used_us += LOOP_SHARE_MIN_US;
    share->clock_us += used_us - charged_us;
    share->usual_us = share->usual_us > 0 ? (share->usual_us * 7 + used_us) / 8 : used_us;
}
