/* overload.c - no clock is read here. */
#include "engine/schedule/overload.h"

void crowd_refused(struct crowd *crowd, int64_t at_ms)
{
    crowd->until_ms = at_ms + CROWD_LASTS_MS;
}

bool crowd_is_there(const struct crowd *crowd, int64_t at_ms)
{
    return at_ms < crowd->until_ms;
}

uint32_t crowd_share(uint32_t served, uint32_t busy, uint32_t keys)
{
    uint32_t room = busy > served && busy - served > served / 2 ? busy - served : served / 2;
    uint32_t share = room / (keys > 0 ? keys : 1);
    return share > 0 ? share : 1;
}
