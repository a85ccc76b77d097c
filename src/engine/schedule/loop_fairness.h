/* loop_fairness.h - which senders are served in a turn of the loop, if serving all takes too long.
 *
 * Each turn has a time limit, which begins with the first sender that asks, so that at least one is
 * served in each turn. Senders that come after the limit wait for the next turn; senders that were
 * served already wait until these are served: that is a round. Pure: the caller reads the clock. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loop_fairness {
    uint64_t number;  /* of the current turn */
    int64_t began_us; /* when the first sender asked in it */
    uint64_t round;   /* from 1 */
    bool one_waits;   /* a sender that was not served in this round */
};

/* Begins a turn of the loop, if `number` is a new one. */
static inline void loop_fairness_begins(struct loop_fairness *turn, uint64_t number, int64_t at_us)
{
    if (turn->number == number)
        return;
    turn->round += !turn->one_waits;
    turn->one_waits = false;
    turn->number = number;
    turn->began_us = at_us;
}

/* May this sender be served now, if a turn has room_us? *its_round is its last round: 0 at
 * first. */
static inline bool loop_fairness_goes_on(struct loop_fairness *turn, uint64_t *its_round,
                                         int64_t at_us, int64_t room_us)
{
    bool has_time = at_us - turn->began_us < room_us;
    if (*its_round == turn->round)
        return false;
    turn->one_waits |= !has_time;
    if (has_time)
        *its_round = turn->round;
    return has_time;
}

/* The same for sandboxes, first by tenant: a tenant with many sandboxes gets no more of a turn than
 * one with a single sandbox. Tenants are counted by number modulo LOOP_TENANTS. */
enum { LOOP_TENANTS = 64 };

struct loop_tenants {
    int64_t all_room_us, tenant_room_us; /* of a turn */
    struct loop_fairness all, of[LOOP_TENANTS];
};

/* The last rounds of one sandbox. */
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
