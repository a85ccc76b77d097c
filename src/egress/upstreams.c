/* upstreams.c - see upstreams.h. */
#include "egress/upstream_request.h"

int upstreams_open(uv_loop_t *loop, const struct secrets *secrets, int ca_file,
                   struct upstreams **ret_upstreams, error *err)
{
    static struct upstreams upstreams;
    if (transfers_open(loop, ca_file, exchange_ended, &upstreams.transfers, err) < 0)
        return -1;
    upstreams.loop = loop;
    upstreams.secrets = secrets;
    *ret_upstreams = &upstreams;
    return 0;
}
