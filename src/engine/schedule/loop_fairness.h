/* loop_fairness.h - who may go on in a turn of the loop when what all of them send takes too long.
 *
 * A turn has so much time for it. Who comes after that is put off, and what has had a turn waits
 * until all of those have had theirs: that is a round. Pure: the clock is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop_fairness {
    uint64_t number;     /* of the turn of the loop */
    uint64_t round;      /* from 1 on */
    bool somebody_waits; /* who has had no turn in this round */
};

/* A turn of the loop begins, unless it is the same as before. */
static inline void loop_fairness_begins(struct loop_fairness *turn, uint64_t number)
{
    if (turn->number == number)
        return;
    turn->round += !turn->somebody_waits;
    turn->somebody_waits = false;
    turn->number = number;
}

/* May one go on that asks now? *its_round is its own: 0 before its first. */
static inline bool loop_fairness_goes_on(struct loop_fairness *turn, uint64_t *its_round,
                                         bool has_time)
{
    if (*its_round == turn->round)
        return false;
    turn->somebody_waits |= !has_time;
    if (has_time)
        *its_round = turn->round;
    return has_time;
}
