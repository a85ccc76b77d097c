/* overload.c - see overload.h; reads no clock. */
#include "engine/schedule/overload.h"

void overload_refused(struct overload *overload, int64_t at_ms)
{
    overload->until_ms = at_ms + OVERLOAD_LASTS_MS;
}

bool overload_is_there(const struct overload *overload, int64_t at_ms)
{
    return at_ms < overload->until_ms;
}

uint32_t overload_share(uint32_t served, uint32_t busy, uint32_t keys)
{
    uint32_t room = busy > served && busy - served > served / 2 ? busy - served : served / 2;
    uint32_t share = room / (keys > 0 ? keys : 1);
    return share > 0 ? share : 1;
}
