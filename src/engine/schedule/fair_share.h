/* fair_share.h - whose run is next when several keys wait.
 *
 * Each key has a clock that shows the processor time its runs have used; the key whose clock shows
 * least goes first. A run is charged when it begins, with what runs of this key have used of late,
 * and put right when it ends. A key that comes back after a pause starts where the others are: what
 * it did not use is not saved up. (Start-time fair queueing; Goyal, Vin, Cheng 1996.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fair_share {
    int64_t clock_us;
    int64_t usual_us; /* processor time of one run, a running mean */
    uint32_t queued, active;
    uint32_t active_max; /* 0: as many as there is room for */
};

/* Is there one that could begin? */
bool fair_share_is_ready(const struct fair_share *turn);

/* Does the first of two that are ready go before the second? */
bool fair_share_is_before(const struct fair_share *turn, const struct fair_share *other);

/* Runs and sessions keep their slots as long as they like, so no key may take all that are left:
 * how many one key may hold while there are other keys, three quarters of what those leave, and one
 * at least. However many keys take what they can get, a slot is left for a key that has none, and
 * as slots come free those that hold less get them. (Dynamic thresholds; Choudhury, Hahne 1998.) */
uint32_t fair_share_slots_max(uint32_t slots, uint32_t held_by_others);

/* One more waits. `now_us`: the clock of the one that began last. */
void fair_share_joins(struct fair_share *turn, int64_t now_us);

/* One begins, or gives up waiting. Gives  what it was charged, for fair_share_ends(). */
int64_t fair_share_begins(struct fair_share *turn);
void fair_share_leaves(struct fair_share *turn);

/* One has ended. */
void fair_share_ends(struct fair_share *turn, int64_t charged_us, int64_t used_us);
