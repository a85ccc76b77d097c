/* child_process.c - prepares a program before fork(2), and starts it in the child. */
#include "supervisor/child_process.h"

#include "base/cleanup.h"
#include "base/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

void program_done(struct program *program)
{
    free(program->path);
    for (size_t index = 0; index < program->argument_count; index++)
        free(program->arguments[index]);
    free(program->arguments);
    for (size_t index = 0; index < program->opened_count; index++)
        (void) close(program->opened[index]);
}

static int too_many(const struct program *program, error *err)
{
    return fail(err, ERR_INTERNAL, "too many descriptors for '%s'", program->path);
}

int program_add(struct program *program, error *err, const char *format, ...)
{
    size_t size = (program->argument_count + 2) * sizeof *program->arguments;
    char **longer = realloc(program->arguments, size);
    if (!longer)
        return fail(err, ERR_INTERNAL, "out of memory");
    program->arguments = longer;
    va_list values;
    va_start(values, format);
    char *text = NULL;
    int length = vasprintf(&text, format, values);
    va_end(values);
    if (length < 0)
        return fail(err, ERR_INTERNAL, "out of memory");
    program->arguments[program->argument_count++] = text;
    program->arguments[program->argument_count] = NULL;
    return 0;
}

int program_add_pair(struct program *program, const char *flag, const char *value, error *err)
{
    return program_add(program, err, "%s", flag) < 0 ? -1 : program_add(program, err, "%s", value);
}

int program_add_fd(struct program *program, const char *flag, int fd, error *err)
{
    if (program->fd_count == PROGRAM_FDS_MAX)
        return too_many(program, err);
    program->fds[program->fd_count++] = fd;
    return program_add(program, err, "%s", flag) < 0
               ? -1
               : program_add(program, err, "%zu", PROGRAM_FIRST_FD + program->fd_count - 1);
}

int program_give(struct program *program, int fd, error *err)
{
    if (program->fd_count == PROGRAM_FDS_MAX) {
        close_fd(&fd);
        return too_many(program, err);
    }
    program->opened[program->opened_count++] = fd;
    program->fds[program->fd_count++] = fd;
    return PROGRAM_FIRST_FD + (int) program->fd_count - 1;
}

int program_add_file(struct program *program, const char *option, const char *path, error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0)
        return fail_os(err, "open '%s', named by %s", path, option);
    int number = program_give(program, fd, err);
    if (number < 0 || program_add(program, err, "%s", option) < 0)
        return -1;
    return program_add(program, err, "%d=%s", number, path);
}

/* Can users other than root reach this folder? */
static bool others_can_enter(const char *path)
{
    char part[PATH_MAX];
    if (snprintf(part, sizeof part, "%s", path) >= (int) sizeof part)
        return false;
    for (;;) {
        struct stat status;
        if (stat(part, &status) < 0 || !(status.st_mode & S_IXOTH))
            return false;
        char *slash = strrchr(part, '/');
        if (!slash || slash == part)
            return true;
        *slash = '\0';
    }
}

int program_folder(struct program *program, const char *folder, char *text, size_t size, error *err)
{
    size_t used = strlen(text);
    int length;
    if (program->becomes == 0 || access(folder, F_OK) < 0 || others_can_enter(folder)) {
        length = snprintf(text + used, size - used, "%s", folder);
    } else {
        int fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            return fail_os(err, "open folder '%s'", folder);
        int number = program_give(program, fd, err);
        if (number < 0)
            return -1;
        length = snprintf(text + used, size - used, "/proc/self/fd/%d", number);
    }
    if (length < 0 || (size_t) length >= size - used)
        return fail(err, ERR_BAD_REQUEST, "the path '%.80s…' is too long", folder);
    return 0;
}

/* ---- in the child: only system calls, since another thread may have held any lock ---- */

_Noreturn static void die(int log, const char *what, const char *name)
{
    const char *cause = strerrordesc_np(errno);
    (void) dprintf(log, "glovebox: %s %s: %s\n", what, name, cause ? cause : "unknown error");
    _exit(EXIT_FAILURE);
}

/* Puts stdin, stdout, stderr and the wanted descriptors at their numbers and closes all others. */
static void arrange_descriptors(const struct program *program, int nothing)
{
    int high[PROGRAM_FDS_MAX];
    (void) open_files_raise();
    int log = fcntl(program->log, F_DUPFD, PROGRAM_HIGH_FD);
    nothing = fcntl(nothing, F_DUPFD, PROGRAM_HIGH_FD);
    bool failed = log < 0 || nothing < 0;
    for (size_t index = 0; index < program->fd_count; index++) {
        high[index] = fcntl(program->fds[index], F_DUPFD, PROGRAM_HIGH_FD);
        failed = failed || high[index] < 0;
    }
    if (failed || dup2(nothing, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0)
        die(program->log, "arrange descriptors of", program->path);
    for (size_t index = 0; index < program->fd_count; index++)
        if (dup2(high[index], PROGRAM_FIRST_FD + (int) index) < 0)
            die(2, "arrange descriptors of", program->path);
    if (syscall(SYS_close_range, PROGRAM_FIRST_FD + program->fd_count, ~0U, 0) < 0)
        die(2, "close descriptors of", program->path);
}

_Noreturn static void become(const struct program *program, int nothing, pid_t launcher)
{
    arrange_descriptors(program, nothing);
    int file = open(program->path, O_PATH | O_CLOEXEC);
    (void) setsid(); /* so that Ctrl-C at the terminal only reaches the launcher */
    (void) umask(0022);
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL); /* NOLINT(concurrency-mt-unsafe): after fork */
    for (int number = 1; number < SIGRTMIN; number++)
        (void) signal(number, SIG_DFL);
    if (chdir("/") < 0)
        die(2, "enter / for", program->path);
    uid_t id = program->becomes;
    if (id != 0 &&
        (setgroups(0, NULL) < 0 || setresgid(id, id, id) < 0 || setresuid(id, id, id) < 0))
        die(2, "drop root for", program->path);
    /* After the ids, since changing them clears it: prctl(2). */
    if (program->death_signal != 0) {
        if (prctl(PR_SET_PDEATHSIG, program->death_signal) < 0)
            die(2, "tie to the launcher", program->path);
        if (getppid() != launcher)
            _exit(EXIT_FAILURE); /* the launcher has ended already */
    }
#ifdef GLOVEBOX_DISABLE_WALL
    char **environment = environ; /* test builds that leave this wall out */
#else
    char *environment[] = { NULL };
#endif
    /* By path, so that ps shows its name; by descriptor if its user cannot reach the path. */
    (void) execve(program->path, program->arguments, environment);
    if (errno == EACCES && file >= 0)
        (void) syscall(SYS_execveat, file, "", program->arguments, environment, AT_EMPTY_PATH);
    die(2, "start", program->path);
}

int program_start(struct program *program, pid_t *ret_pid, int *ret_pidfd, error *err)
{
    enum { OPEN_FILES_MIN = PROGRAM_HIGH_FD + 2 + PROGRAM_FDS_MAX };
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_max < OPEN_FILES_MIN)
        return fail(err, ERR_UNAVAILABLE, "%lu descriptors are allowed (ulimit -Hn), %d are needed",
                    (unsigned long) files.rlim_max, OPEN_FILES_MIN);
    program->arguments[program->argument_count] = NULL;
    auto_fd nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing < 0)
        return fail_os(err, "open /dev/null");
    pid_t launcher = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return fail_os(err, "start '%s'", program->path);
    if (pid == 0)
        become(program, nothing, launcher);
    int pidfd = (int) syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        error cause;
        (void) fail_os(&cause, "watch '%s'", program->path);
        (void) kill(pid, SIGKILL);
        (void) waitpid(pid, NULL, 0);
        *err = cause;
        return -1;
    }
    *ret_pid = pid;
    *ret_pidfd = pidfd;
    return 0;
}
