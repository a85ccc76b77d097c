/* rates.c - how often each endpoint may be asked. */
#include "egress/exchange.h"

#include "base/clock.h"
#include "base/table.h"

#include <string.h>

static bool is_same(const struct egress_endpoint *one, const struct egress_endpoint *other)
{
    return one->rate == other->rate && one->port == other->port &&
           strcmp(one->name, other->name) == 0 && strcmp(one->host, other->host) == 0;
}

enum { MINUTE_MS = 60000 };

/* For each endpoint with a rate: it holds a minute's requests and fills evenly. */
struct bucket {
    struct egress_endpoint of;
    uint64_t level; /* a request costs MINUTE_MS, each millisecond brings `rate` */
    int64_t at_ms;
};

static struct bucket *find_bucket(const struct egress_endpoint *endpoint)
{
    static struct bucket buckets[64];
    struct bucket *oldest = &buckets[0]; /* has filled up again since */
    for_each(bucket, buckets) {
        if (is_same(&bucket->of, endpoint))
            return bucket;
        if (bucket->at_ms < oldest->at_ms)
            oldest = bucket;
    }
    *oldest = (struct bucket){ .of = *endpoint, .level = UINT64_MAX / 2 };
    return oldest;
}

bool rate_allows(const struct egress_endpoint *endpoint)
{
    if (endpoint->rate == 0)
        return true;
    struct bucket *bucket = find_bucket(endpoint);
    uint64_t most = (uint64_t) endpoint->rate * MINUTE_MS;
    int64_t now = now_ms();
    if (bucket->level < most)
        bucket->level += (uint64_t) (now - bucket->at_ms) * endpoint->rate;
    if (bucket->level > most)
        bucket->level = most;
    bucket->at_ms = now;
    if (bucket->level < MINUTE_MS)
        return false;
    bucket->level -= MINUTE_MS;
    return true;
}
