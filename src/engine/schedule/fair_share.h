/* fair_share.h - whose run is next when several keys wait.
 *
 * Each key has a clock that shows the processor time its runs have used; the key with the lowest
 * clock is next. A run is charged with the recent mean of its key when it begins, and with the
 * difference when it ends. A key that returns after a pause continues at the clock of the others:
 * unused time is not saved. (Start-time fair queueing; Goyal, Vin, Cheng 1996.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fair_share {
    int64_t clock_us;
    int64_t usual_us; /* processor time of one run, a running mean */
    uint32_t queued, active;
    uint32_t active_max; /* 0: as many as there is room for */
};

/* Is there a run that could begin? */
bool fair_share_is_ready(const struct fair_share *turn);

/* Both have one that could begin: is the first one next? */
bool fair_share_is_before(const struct fair_share *turn, const struct fair_share *other);

/* Runs and sessions hold slots as long as they like, so no key may take all free ones. While there
 * are other keys, one key may hold three quarters of the slots that the others leave, and at least
 * one. However many keys take all they can, a slot is left for a key that has none, and slots that
 * become free go to keys with fewer. (Dynamic thresholds; Choudhury, Hahne 1998.) */
uint32_t fair_share_slots_max(uint32_t slots, uint32_t held_by_others);

/* One more waits. `now_us`: the clock of the account whose run began last. */
void fair_share_joins(struct fair_share *turn, int64_t now_us);

/* A run begins, or stops waiting. Gives  its charge, for fair_share_ends(). */
int64_t fair_share_begins(struct fair_share *turn);
void fair_share_leaves(struct fair_share *turn);

/* A run has ended. */
void fair_share_ends(struct fair_share *turn, int64_t charged_us, int64_t used_us);
