/* clock.h - points in time on a clock that is never set, and the time left until them. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A point in time. Names of durations end in _ms or _us. */
typedef struct deadline {
    int64_t at_ms; /* CLOCK_BOOTTIME, so that a suspended host does not stretch a run */
} deadline;

int64_t now_ms(void); /* CLOCK_BOOTTIME */
int64_t now_us(void);
int64_t wall_clock_ms(void); /* milliseconds since 1970, for people and receipts only */
deadline deadline_in(int64_t duration_ms);
int64_t deadline_left_ms(deadline end); /* 0 once it has passed */
bool deadline_has_passed(deadline end);
