/* resting.c - streams that are open for as long as their clients run, and have hardly anything to
 * say: a thousand of them take no connection from those that ask something, and little memory. */
#include "doors/http/authenticate.h"
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
        return; /* it counts as the others do */
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

/* Does a block of CONNECTION_BYTES from malloc() begin here? Its size stands before it, with three
 * flags. Empty lines before a request move its beginning within the block: what stands before it
 * then are their line ends, and only what is certain to lie in the block may be given back. The
 * size is read where it lies in the same page, and by no sanitizer, whose blocks look otherwise. */
__attribute__((no_sanitize("address"))) static bool is_block(uintptr_t start)
{
    if (start % PAGE < sizeof(size_t))
        return false;
    const volatile size_t *size =
        (const volatile size_t *) (start - sizeof(size_t)); /* NOLINT(performance-no-int-to-ptr) */
    return start % sizeof(size_t) == 0 && (*size & ~(size_t) 7) == CONNECTION_BYTES + 16;
}

/* libmicrohttpd reads a request into the first half of CONNECTION_BYTES, and overwrites with zeros
 * what of it the request did not need: pages of memory that hold nothing. Zeros is what the kernel
 * gives when such a page is touched again, so that no difference can be seen. */
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
