/* clock.c - reads CLOCK_BOOTTIME and CLOCK_REALTIME. */
#include "base/clock.h"

#include <time.h>

static int64_t read_us(clockid_t clock)
{
    struct timespec at = { 0 };
    (void) clock_gettime(clock, &at);
    return (int64_t) at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

int64_t now_us(void)
{
    return read_us(CLOCK_BOOTTIME);
}

int64_t now_ms(void)
{
    return now_us() / 1000;
}

int64_t wall_clock_ms(void)
{
    return read_us(CLOCK_REALTIME) / 1000;
}

deadline deadline_in(int64_t duration_ms)
{
    return (deadline){ .at_ms = now_ms() + duration_ms };
}

int64_t deadline_left_ms(deadline end)
{
    int64_t left = end.at_ms - now_ms();
    return left > 0 ? left : 0;
}

bool deadline_has_passed(deadline end)
{
    return deadline_left_ms(end) == 0;
}
