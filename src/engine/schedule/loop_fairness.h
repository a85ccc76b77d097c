/* loop_fairness.h - who may go on in a turn of the loop when what all of them send takes too long.
 *
 * A turn has so much time for them, from the first that asks: whatever else has filled the turn
 * before, one goes on in each. Those that come later than that are put off, and those that have had
 * a turn wait until these have had theirs: that is a round. Pure: the clock is the caller's. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop_fairness {
    uint64_t number;     /* of the turn of the loop */
    int64_t began_us;    /* when the first of them asked in it, on the clock of the turn */
    uint64_t round;      /* from 1 on */
    bool somebody_waits; /* who has had no turn in this round */
};

/* A turn of the loop begins, unless it is the same as before. */
static inline void loop_fairness_begins(struct loop_fairness *turn, uint64_t number, int64_t at_us)
{
    if (turn->number == number)
        return;
    turn->round += !turn->somebody_waits;
    turn->somebody_waits = false;
    turn->number = number;
    turn->began_us = at_us;
}

/* May one go on that asks now, where a turn has room_us for them? *its_round is its own: 0 before
 * its first. */
static inline bool loop_fairness_goes_on(struct loop_fairness *turn, uint64_t *its_round,
                                         int64_t at_us, int64_t room_us)
{
    bool has_time = at_us - turn->began_us < room_us;
    if (*its_round == turn->round)
        return false;
    turn->somebody_waits |= !has_time;
    if (has_time)
        *its_round = turn->round;
    return has_time;
}

/* The same for sandboxes, by tenant first: who has many of them has no more of a turn than who has
 * one. Tenants whose numbers end alike share. */
enum { LOOP_TENANTS = 64 };

struct loop_tenants {
    int64_t all_room_us, tenant_room_us; /* of a turn */
    struct loop_fairness all, of[LOOP_TENANTS];
};

/* Rounds of one sandbox. */
struct loop_rounds {
    uint64_t among_all, of_tenant;
};

static inline bool loop_tenants_go_on(struct loop_tenants *turn, uint32_t tenant,
                                      struct loop_rounds *its, uint64_t number, int64_t at_us)
{
    struct loop_fairness *own = &turn->of[tenant % LOOP_TENANTS];
    loop_fairness_begins(own, number, at_us);
    loop_fairness_begins(&turn->all, number, at_us);
    return loop_fairness_goes_on(own, &its->of_tenant, at_us, turn->tenant_room_us) &&
           loop_fairness_goes_on(&turn->all, &its->among_all, at_us, turn->all_room_us);
}
