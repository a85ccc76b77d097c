/* path_access.c - see path_access.h. */
#include "supervisor/path_access.h"

#include "base/cleanup.h"
#include "model/ids.h"

#include <errno.h>
#include <grp.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Finds the first folder of a path that not all users can enter. False if there is none. */
static bool find_closed(const char *path, char *ret_folder, size_t size)
{
    for (const char *slash = path; slash; slash = strchr(slash + 1, '/')) {
        struct stat status;
        const char *next = strchr(slash + 1, '/');
        size_t length = next ? (size_t) (next - path) : strlen(path);
        (void) snprintf(ret_folder, size, "%.*s", (int) length, path);
        if (stat(ret_folder, &status) < 0 || !(status.st_mode & S_IXOTH))
            return true;
    }
    return false;
}

/* Only system calls in the child: another thread may have held any lock. */
static bool is_kept_out(const char *path, uid_t id, int mode)
{
    enum { MAY_ENTER, KEPT_OUT };
    pid_t pid = fork();
    if (pid == 0) {
        bool became =
            setgroups(0, NULL) == 0 && setresgid(id, id, id) == 0 && setresuid(id, id, id) == 0;
        _exit(became && access(path, mode) < 0 && errno == EACCES ? KEPT_OUT : MAY_ENTER);
    }
    int status = 0;
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) && WEXITSTATUS(status) == KEPT_OUT;
}

bool daemon_cannot_read(const char *path)
{
    return access(path, R_OK) < 0 || (geteuid() == 0 && is_kept_out(path, HOST_ID_DAEMON, R_OK));
}

int check_reach(const char *folder, uid_t id, error *err)
{
    char closed[PATH_MAX];
    auto_text path = realpath(folder, NULL);
    if (!path || !find_closed(path, closed, sizeof closed) || !is_kept_out(path, id, X_OK))
        return 0;
    return fail(err, ERR_UNAVAILABLE,
                "'%s' lets no other user in, and sandboxes have ids of their own; run chmod o+x on "
                "it, or choose another state folder: GLOVEBOX_STATE",
                closed);
}
