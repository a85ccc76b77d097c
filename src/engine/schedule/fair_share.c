/* fair_share.c - clocks of processor time; no real clock is read here. */
#include "engine/schedule/fair_share.h"

enum { USUAL_US = 2000, MIN_US = 200 /* the least cost of a run */ };

bool fair_share_is_ready(const struct fair_share *turn)
{
    return turn->queued > 0 && (turn->active_max == 0 || turn->active < turn->active_max);
}

bool fair_share_is_before(const struct fair_share *turn, const struct fair_share *other)
{
    return turn->clock_us < other->clock_us;
}

uint32_t fair_share_slots_max(uint32_t slots, uint32_t held_by_others)
{
    uint64_t left = slots > held_by_others ? slots - held_by_others : 0;
    return left * 3 / 4 > 1 ? (uint32_t) (left * 3 / 4) : 1;
}

void fair_share_joins(struct fair_share *turn, int64_t now_us)
{
    if (turn->queued == 0 && turn->active == 0 && turn->clock_us < now_us)
        turn->clock_us = now_us;
    turn->queued++;
}

int64_t fair_share_begins(struct fair_share *turn)
{
    int64_t charged_us = turn->usual_us > 0 ? turn->usual_us : USUAL_US;
    turn->queued--;
    turn->active++;
    turn->clock_us += charged_us;
    return charged_us;
}

void fair_share_leaves(struct fair_share *turn)
{
    turn->queued--;
}

void fair_share_ends(struct fair_share *turn, int64_t charged_us, int64_t used_us)
{
    if (used_us < MIN_US)
        used_us = MIN_US;
    turn->active--;
    turn->clock_us += used_us - charged_us;
    turn->usual_us = turn->usual_us > 0 ? (turn->usual_us * 7 + used_us) / 8 : used_us;
}
