/* rate_limits.c - limits the requests per minute to each endpoint, by token buckets. */
#include "egress/upstream_request.h"

#include <stdlib.h>
#include <string.h>

enum { MINUTE_MS = 60000, BUCKETS_MAX = 1024 };

/* One for each endpoint with a rate: it holds the requests of a minute, and fills evenly. */
struct bucket {
    char name[EGRESS_ENDPOINT_NAME_SIZE];
    char host[HOST_NAME_SIZE];
    uint16_t port;
    uint32_t rate;
    uint64_t level; /* a request costs MINUTE_MS, each millisecond adds `rate` */
    int64_t at_ms;
};

static struct bucket *buckets;
static size_t count, room;

static bool is_of(const struct bucket *bucket, const struct egress_endpoint *endpoint)
{
    return bucket->rate == endpoint->rate && bucket->port == endpoint->port &&
           strcmp(bucket->name, endpoint->name) == 0 && strcmp(bucket->host, endpoint->host) == 0;
}

static uint64_t max_of(const struct bucket *bucket)
{
    return (uint64_t) bucket->rate * MINUTE_MS;
}

static uint64_t level_at(const struct bucket *bucket, int64_t now)
{
    uint64_t level = bucket->level + (uint64_t) (now - bucket->at_ms) * bucket->rate;
    return level < max_of(bucket) ? level : max_of(bucket);
}

static bool make_room(void)
{
    size_t more = room > 0 ? room * 2 : 16;
    struct bucket *larger = more <= BUCKETS_MAX ? realloc(buckets, more * sizeof *buckets) : NULL;
    if (!larger)
        return false;
    buckets = larger;
    room = more;
    return true;
}

/* A full bucket has no effect, so its place is used again before the array grows. One that is not
 * full is never dropped, or code that uses many endpoints in turn would have no limit. NULL: no
 * place. */
static struct bucket *find_bucket(const struct egress_endpoint *endpoint, int64_t now)
{
    struct bucket *place = NULL;
    for (size_t i = 0; i < count; i++) {
        if (is_of(&buckets[i], endpoint))
            return &buckets[i];
        if (!place && level_at(&buckets[i], now) == max_of(&buckets[i]))
            place = &buckets[i];
    }
    if (!place && count == room && !make_room())
        return NULL;
    if (!place)
        place = &buckets[count++];
    *place = (struct bucket){ .port = endpoint->port, .rate = endpoint->rate, .at_ms = now };
    memcpy(place->name, endpoint->name, sizeof place->name);
    memcpy(place->host, endpoint->host, sizeof place->host);
    place->level = max_of(place);
    return place;
}

bool rate_allows(const struct egress_endpoint *endpoint, int64_t now)
{
    if (endpoint->rate == 0)
        return true;
    struct bucket *bucket = find_bucket(endpoint, now);
    if (!bucket)
        return false;
    bucket->level = level_at(bucket, now);
    bucket->at_ms = now;
    if (bucket->level < MINUTE_MS)
        return false;
    bucket->level -= MINUTE_MS;
    return true;
}
