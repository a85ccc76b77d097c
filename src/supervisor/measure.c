/* measure.c - see measure.h. */
#include "supervisor/measure.h"

#include "base/cleanup.h"
#include "supervisor/child_process.h"
#include "supervisor/install_paths.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Sets the path of the program to this one. */
static int name_program(struct program *program, error *err)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size < 0)
        return fail_os(err, "find the program");
    path[size] = '\0';
    program->path = strdup(path);
    return program->path ? 0 : fail(err, ERR_SYSTEM, "no memory for a path");
}

static int begin(struct measuring *measuring, const char *state, error *err)
{
    auto_text folder = NULL;
    auto_program program = { .death_signal = SIGKILL, .log = STDERR_FILENO };
    if (path_of_state(state, &folder, err) < 0 || name_program(&program, err) < 0 ||
        program_add(&program, err, "glovebox") < 0 || program_add(&program, err, "template") < 0 ||
        program_add(&program, err, "verify") < 0 || program_add(&program, err, "--record") < 0 ||
        program_add_pair(&program, "--state", folder, err) < 0)
        return -1;
    return program_start(&program, &measuring->pid, &measuring->pidfd, err);
}

void measuring_begin(struct measuring *measuring, const char *state)
{
    error err;
    if (begin(measuring, state, &err) == 0)
        return;
    (void) fprintf(stderr, "glovebox serve: templates are not measured: %s\n", err.text);
    *measuring = (struct measuring){ .pidfd = -1 };
}

void measuring_end(struct measuring *measuring)
{
    if (measuring->pid <= 0)
        return;
    (void) kill(measuring->pid, SIGKILL);
    (void) waitpid(measuring->pid, NULL, 0);
    close_fd(&measuring->pidfd);
    *measuring = (struct measuring){ .pidfd = -1 };
}
