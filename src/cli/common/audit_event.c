/* audit_event.c - see audit_event.h. */
#include "cli/common/audit_event.h"

#include "base/cleanup.h"
#include "supervisor/install_paths.h"
#include "supervisor/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

int become_daemon_user(const char *state, error *err)
{
    auto_text folder = NULL;
    auto_text above = NULL;
    if (path_of_state(state, &above, err) < 0 || launch_state_folder(state, &folder, err) < 0)
        return -1;
    if (state && strncmp(folder, above, strlen(above)) != 0) /* `state` is of another user */
        return fail(err, ERR_UNAVAILABLE, "'%s' is another user's; run this as root", above);
    auto_fd fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return fail_os(err, "open '%s'", folder);
    if (geteuid() == 0 && status.st_uid != 0 &&
        (setgroups(0, NULL) < 0 || setresgid(status.st_gid, status.st_gid, status.st_gid) < 0 ||
         setresuid(status.st_uid, status.st_uid, status.st_uid) < 0))
        return fail_os(err, "become the daemon's user");
    if (fchdir(fd) < 0) /* it may be below a folder that this user cannot enter */
        return fail_os(err, "enter '%s'", folder);
    return 0;
}

/* `kind` NULL: makes a new key for the log. */
static int append_here(const char *state, const char *kind, const struct event_field *fields,
                       error *err)
{
    if (become_daemon_user(state, err) < 0)
        return -1;
    auto_fd here = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (here < 0)
        return fail_os(err, "open the daemon's folder");
    return kind ? event_append(here, kind, fields, err) : event_rotate_key(here, err);
}

int tell_audit(const char *state, const char *kind, const struct event_field *fields, error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    auto_fd ours = ends[0], theirs = ends[1];
    pid_t child = fork();
    if (child == 0) {
        int result = append_here(state, kind, fields, err);
        (void) !write(theirs, err, result < 0 ? sizeof *err : 0);
        _exit(result < 0);
    }
    if (child < 0)
        return fail_os(err, "start a process for the log");
    (void) close(take_fd(&theirs));
    error told;
    ssize_t got = read(ours, &told, sizeof told); /* in one piece: PIPE_BUF is larger */
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (status == 0)
        return 0;
    if (got != (ssize_t) sizeof told)
        return fail(err, ERR_INTERNAL, "the log was not written");
    *err = told;
    return -1;
}

int tell_rotated_key(const char *state, error *err)
{
    return tell_audit(state, NULL, NULL, err);
}
