/* overload.h - how many may wait once the queue was full.
 *
 * A queue takes a burst. Where it stays full, every request in it waits for all of it, and none is
 * served sooner than if it were short. So from the first refusal on, until none has been refused
 * for a while, no more may wait than half of those that are being served: who waits then waits for
 * less time than it is served. (Nichols and Jacobson, Controlling Queue Delay, 2012: only a
 * standing queue is bad.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* As a client that was told Retry-After: 1 is back by then: if it finds room, it is over. */
enum { OVERLOAD_LASTS_MS = 2000 };

struct overload {
    int64_t until_ms; /* 0: there never was one */
};

void overload_refused(struct overload *overload, int64_t at_ms);
bool overload_is_there(const struct overload *overload, int64_t at_ms);

/* How many runs each of `keys` that wait, or want to, may have waiting while `served` are served:
 * an equal share of half as many, and one at least, so that a key that floods takes no place from
 * another key. Up to `busy` together are no crowd, even those that ask again at once: so it ends.
 */
uint32_t overload_share(uint32_t served, uint32_t busy, uint32_t keys);
