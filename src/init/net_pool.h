/* net_pool.h - network namespaces that a fork server uses again, for sandboxes without a network.
 * Making one takes longer than all other namespaces together, and its end keeps a kernel thread
 * busy.
 *
 * A namespace is used again only when its sandbox has ended, for the same tenant, and if no socket
 * is left in it: has_no_socket() says why that is enough. */
#pragma once

#include "contract/build.h"

enum { NET_POOL_NONE = -1 };

/* Call it first, in the network namespace of the fork server. If the kernel lacks something, no
 * namespace is used again. */
void net_pool_open(void);

/* Moves this process into a namespace for that sandbox, and gives its number. NET_POOL_NONE: it has
 * not moved, and the sandbox needs a new namespace. */
int net_pool_enter(const struct build_sandbox *spec);

/* Moves back. `init` is the pidfd of the sandbox that was cloned there, borrowed; -1: none was. */
void net_pool_leave(int number, int init);

/* Waits until `socket` can be read, and meanwhile drops namespaces that are not needed. */
void net_pool_wait(int socket);
