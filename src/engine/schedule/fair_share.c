/* fair_share.c - clocks of processor time; no real clock is read here. */
#include "engine/schedule/fair_share.h"

enum { USUAL_US = 2000, LEAST_US = 200 /* what a run costs us, however little it does */ };

bool turn_is_ready(const struct turn *turn)
{
    return turn->queued > 0 && (turn->active_most == 0 || turn->active < turn->active_most);
}

bool turn_is_before(const struct turn *turn, const struct turn *other)
{
    return turn->clock_us < other->clock_us;
}

uint32_t turn_slots_most(uint32_t slots, uint32_t held_by_others)
{
    uint64_t left = slots > held_by_others ? slots - held_by_others : 0;
    return left * 3 / 4 > 1 ? (uint32_t) (left * 3 / 4) : 1;
}

void turn_joins(struct turn *turn, int64_t now_us)
{
    if (turn->queued == 0 && turn->active == 0 && turn->clock_us < now_us)
        turn->clock_us = now_us;
    turn->queued++;
}

int64_t turn_begins(struct turn *turn)
{
    int64_t charged_us = turn->usual_us > 0 ? turn->usual_us : USUAL_US;
    turn->queued--;
    turn->active++;
    turn->clock_us += charged_us;
    return charged_us;
}

void turn_leaves(struct turn *turn)
{
    turn->queued--;
}

void turn_ends(struct turn *turn, int64_t charged_us, int64_t used_us)
{
    if (used_us < LEAST_US)
        used_us = LEAST_US;
    turn->active--;
    turn->clock_us += used_us - charged_us;
    turn->usual_us = turn->usual_us > 0 ? (turn->usual_us * 7 + used_us) / 8 : used_us;
}
