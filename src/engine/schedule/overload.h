/* overload.h - how many runs may wait after the queue was full.
 *
 * A queue absorbs a burst. If it stays full, every request waits for the whole queue, and none is
 * served sooner than with a short one. So from the first refusal until none was refused for a
 * while, only half as many runs may wait as are being served: then the wait is shorter than the
 * run. (Nichols and Jacobson, Controlling Queue Delay, 2012: only a standing queue is bad.) */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A client that got Retry-After: 1 is back before that: if it finds room, the overload has
 * ended. */
enum { OVERLOAD_LASTS_MS = 2000 };

struct overload {
    int64_t until_ms; /* 0: never */
};

void overload_refused(struct overload *overload, int64_t at_ms);
bool overload_is_there(const struct overload *overload, int64_t at_ms);

/* How many runs each of `keys` may have waiting, while `served` runs are being served: an equal
 * share of half as many, and at least one, so that a key that floods takes no place from another.
 * Up to `busy` runs in all are never too many, so that an overload ends. */
uint32_t overload_share(uint32_t served, uint32_t busy, uint32_t keys);
