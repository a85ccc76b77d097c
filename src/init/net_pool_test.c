/* net_pool_test.c - a network namespace is used again after its sandbox has ended and it has no
 * socket, and only for the same tenant. The test runs in its own user namespace; children stand for
 * sandboxes. */
#include "base/test.h"

#include "base/cleanup.h"
#include "init/net_pool.h"

#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct build_sandbox first = { .network = SPAWN_NETWORK_NONE, .tenant = 1 };
static const struct build_sandbox second = { .network = SPAWN_NETWORK_NONE, .tenant = 2 };
static const struct build_sandbox loopback = { .network = SPAWN_NETWORK_LOOPBACK, .tenant = 1 };

static ino_t namespace_here(void)
{
    struct stat status = { 0 };
    (void) stat("/proc/self/ns/net", &status);
    return status.st_ino;
}

/* Starts and ends a sandbox in a namespace of the pool. Returns the namespace; `ret_socket`, if
 * given, gets a socket of it that outlives the sandbox. */
static ino_t live(const struct build_sandbox *spec, int *ret_socket)
{
    int place = net_pool_enter(spec);
    ino_t here = namespace_here();
    if (ret_socket)
        *ret_socket = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    auto_fd init = (int) syscall(SYS_pidfd_open, child, 0);
    expect(init >= 0 && place != NET_POOL_NONE, "no sandbox");
    (void) waitpid(child, NULL, 0);
    net_pool_leave(place, init);
    return here;
}

TEST(an_empty_namespace_is_handed_on_to_its_tenant)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        skip(); /* users cannot make namespaces on this machine */
    ino_t home = namespace_here();
    net_pool_open();
    int held = -1;
    ino_t one = live(&first, NULL);
    expect(one != home && namespace_here() == home, "it did not go there and back");
    expect(live(&first, NULL) == one, "an empty one is not handed on");
    expect(live(&second, NULL) != one, "another tenant got it");
    expect(net_pool_enter(&loopback) == NET_POOL_NONE && namespace_here() == home,
           "one with a network shares none");
    expect(live(&first, &held) == one, "it has rested");
    ino_t other = live(&first, NULL);
    expect(held >= 0 && other != one, "one with a socket in it was handed on");
    close_fd(&held);
    expect(live(&first, NULL) == other, "what was not empty came back");
}

TEST(the_namespace_of_a_sandbox_that_lives_is_not_handed_on)
{
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
        return;
    net_pool_open();
    int place = net_pool_enter(&first);
    ino_t taken = namespace_here();
    pid_t child = fork();
    if (child == 0) {
        (void) pause();
        _exit(0);
    }
    auto_fd init = (int) syscall(SYS_pidfd_open, child, 0);
    net_pool_leave(place, init);
    expect(live(&first, NULL) != taken, "it is in use");
    (void) kill(child, SIGKILL);
    (void) waitpid(child, NULL, 0);
}

TESTS(CASE(an_empty_namespace_is_handed_on_to_its_tenant),
      CASE(the_namespace_of_a_sandbox_that_lives_is_not_handed_on))
