/* io_uring_test.c - runs in its own process, since a filter cannot be removed. */
#include "base/test.h"

#include "base/io_uring.h"

#include <errno.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int try_it(void)
{
    error err = { 0 };
    char parameters[256] = { 0 };
    if (refuse_io_uring(&err) < 0)
        return 1;
    if (syscall(SYS_io_uring_setup, 4, parameters) != -1 || errno != ENOSYS)
        return 2;
    return getppid() > 0 && write(STDERR_FILENO, "", 0) == 0 ? 0 : 3;
}

TEST(a_ring_is_refused_and_nothing_else)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0)
        _exit(try_it());
    require(waitpid(child, &status, 0) == child, "a child");
    expect(WIFEXITED(status) && WEXITSTATUS(status) == 0, "it ended with %d", status);
}

TESTS(CASE(a_ring_is_refused_and_nothing_else))
