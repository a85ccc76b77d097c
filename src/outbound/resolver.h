/* resolver.h - looks up the addresses of names by DNS: c-ares on the event loop. One thread. */
#pragma once

#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <uv.h>

enum { ADDRESSES_MAX = 16 };

struct resolver;
struct lookup;
typedef void resolver_done(void *context, const struct in6_addr *addresses, unsigned count);

/* `server` "address:port" or NULL for what the host is configured with. */
int resolver_open(uv_loop_t *loop, const char *server, struct resolver **ret_resolver, error *err);

/* Calls `done` once, with count 0 if there is no address. NULL if `done` was called already. */
struct lookup *resolver_ask(struct resolver *resolver, const char *name, resolver_done *done,
                            void *context);
void resolver_forget(struct lookup *lookup); /* `done` is not called any more */

/* True if the address is one of this host's own. */
bool address_is_own(const struct in6_addr *address);
