/* resting.c - streams that are open for as long as their clients run, and mostly idle: a thousand
 * of them use little memory, and do not count against the bound on connections. */
#include "doors/http/http_internal.h"
#include "engine/service/service_callers.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, OF_TENANT_MAX = 1024 };

unsigned exchanges_of_tenant(const struct exchange *exchange, bool are_resting)
{
    unsigned count = 0;
    for (const struct connection *connection = exchange->http->connections; connection;
         connection = connection->next) {
        const struct exchange *other = connection->exchange;
        count += other && other->caller.account && other->is_resting == are_resting &&
                 service_sees(&exchange->caller, &other->caller);
    }
    return count;
}

void exchange_rest(struct exchange *exchange)
{
    struct http *http = exchange->http;
    if (exchange->is_resting || http->resting_count >= http->resting_max ||
        (!service_is_owner(&exchange->caller) &&
         exchanges_of_tenant(exchange, true) >= OF_TENANT_MAX))
        return; /* it counts as a connection in use */
    exchange->is_resting = true;
    http->resting_count++;
    if (http->is_full)
        listen_again(http);
}

void exchange_stop_resting(struct exchange *exchange)
{
    if (exchange->is_resting)
        exchange->http->resting_count--;
    exchange->is_resting = false;
}

/* True if a block of CONNECTION_BYTES from malloc() begins here: the size before it says so, in
 * which three bits are flags. If empty lines came before the request, libmicrohttpd has moved its
 * start within the block, and those line ends are before it; then nothing is given back, as it must
 * be certain where the block ends. The size is read only if it is in the same page, and without
 * sanitizers, whose blocks differ. */
__attribute__((no_sanitize("address"))) static bool is_block(uintptr_t start)
{
    if (start % PAGE < sizeof(size_t))
        return false;
    const volatile size_t *size =
        (const volatile size_t *) (start - sizeof(size_t)); /* NOLINT(performance-no-int-to-ptr) */
    return start % sizeof(size_t) == 0 && (*size & ~(size_t) 7) == CONNECTION_BYTES + 16;
}

/* libmicrohttpd reads a request into the first half of CONNECTION_BYTES, and clears what it does
 * not need, so these pages contain zeros. The kernel frees them, and gives zero pages when they are
 * used again, so nothing changes for libmicrohttpd. */
void exchange_give_back(const struct exchange *exchange)
{
    static const char zeros[PAGE];
    const struct connection *connection = connection_of(exchange->connection);
    if (!connection || !connection->target)
        return;
    uintptr_t start = (uintptr_t) connection->target - strlen(exchange->method) - 1;
    if (!is_block(start))
        return;
    uintptr_t begin = (start + PAGE - 1) / PAGE * PAGE;
    uintptr_t end = (start + CONNECTION_BYTES / 2) / PAGE * PAGE;
    for (uintptr_t page = begin; page < end; page += PAGE)
        if (memcmp((const void *) page, zeros, PAGE) == 0) /* NOLINT(performance-no-int-to-ptr) */
            (void) madvise((void *) page, PAGE,
                           MADV_DONTNEED); /* NOLINT(performance-no-int-to-ptr) */
}
