/* call_faults.c - messages that come late or in pieces, and memory that is not there: the calls of
 * gloveboxd's own code (ld(1), --wrap), chosen by the seed. What plays spawner and init is spared.
 */
#include "simulate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

bool sim_is_outside;

ssize_t __real_recv(int socket, void *to, size_t size, int flags);
ssize_t __real_recvmsg(int socket, struct msghdr *message, int flags);
ssize_t __real_sendmsg(int socket, const struct msghdr *message, int flags);
void *__real_malloc(size_t size);
void *__real_realloc(void *old, size_t size);
void *__real_reallocarray(void *old, size_t count, size_t size);

ssize_t __wrap_recv(int socket, void *to, size_t size, int flags);
ssize_t __wrap_recvmsg(int socket, struct msghdr *message, int flags);
ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *old, size_t size);
void *__wrap_reallocarray(void *old, size_t count, size_t size);

static bool fails(unsigned of_100)
{
    return of_100 > 0 && sim_is_on && !sim_is_outside && world->clock_us >= world->faults.from_us &&
           world->clock_us <= world->faults.until_us && chance(100) < of_100;
}

/* --- messages --------------------------------------------------------------------------------- */

static bool is_interrupted(bool sends)
{
    static const int receiving[] = { EINTR, EAGAIN };
    static const int sending[] = { EINTR, EAGAIN, ENOBUFS };
    if (!fails(world->faults.messages))
        return false;
    errno = sends ? sending[chance(3)] : receiving[chance(2)];
    trace("a message is not %s: %s", sends ? "sent" : "received", strerrorname_np(errno));
    return true;
}

ssize_t __wrap_recv(int socket, void *to, size_t size, int flags)
{
    if (is_interrupted(false))
        return -1;
    return __real_recv(socket, to, fails(world->faults.messages) ? 1 + chance(size) : size, flags);
}

ssize_t __wrap_recvmsg(int socket, struct msghdr *message, int flags)
{
    return is_interrupted(false) ? -1 : __real_recvmsg(socket, message, flags);
}

ssize_t __wrap_sendmsg(int socket, const struct msghdr *message, int flags)
{
    return is_interrupted(true) ? -1 : __real_sendmsg(socket, message, flags);
}

/* --- memory ----------------------------------------------------------------------------------- */

static bool is_missing(void)
{
    if (!fails(world->faults.no_memory))
        return false;
    errno = ENOMEM;
    trace("no memory");
    return true;
}

void *__wrap_malloc(size_t size)
{
    return is_missing() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return is_missing() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size)
{
    return is_missing() ? NULL : __real_realloc(old, size);
}

void *__wrap_reallocarray(void *old, size_t count, size_t size)
{
    return is_missing() ? NULL : __real_reallocarray(old, count, size);
}
