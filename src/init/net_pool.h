/* net_pool.h - network namespaces that a fork server uses again, for sandboxes without a network.
 * To make one costs more than all others together, and to end it keeps a kernel thread busy.
 *
 * One is handed on only when its sandbox has ended and it is empty, and only to the same tenant:
 * what that means, and why it is enough, stands at has_no_socket(). */
#pragma once

#include "contract/build.h"

enum { NET_POOL_NONE = -1 };

/* Before anything else, in the namespace that the fork server is to stand in. Fails: the kernel
 * lacks something; no namespace is then used again. */
void net_pool_open(void);

/* Moves this process into a namespace for that sandbox, and gives its number. NET_POOL_NONE: it has
 * not moved, and the sandbox is to get one of its own. */
int net_pool_enter(const struct build_sandbox *spec);

/* Goes back. `init` is the pidfd of the sandbox cloned meanwhile, borrowed; -1: none was. */
void net_pool_leave(int number, int init);

/* Waits until `socket` can be read, and lets go of what more sandboxes have left than are needed.
 */
void net_pool_wait(int socket);
