/* launch.c - starts and ends the programs together, and finds out why they did not start. */
#include "supervisor/launch.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "model/ids.h"
#include "policy/settings.h"
#include "supervisor/command_lines.h"
#include "supervisor/host_features.h"
#include "supervisor/path_access.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void wait_for_waker(struct launch *launch)
{
    while (launch->waker > 0 && waitpid(launch->waker, NULL, 0) < 0 && errno == EINTR)
        ;
    launch->waker = 0;
}

struct launch launch_none(void)
{
    struct launch none = { .spawner_pidfd = -1, .daemon_pidfd = -1, .log = -1 };
    for_each(helper, none.helpers)
        helper->pidfd = helper->socket = -1;
    return none;
}

/* Is anything sent by glovebox-notify: approvals, spans, or checkpoints by HTTP? */
static bool plan_notifies(const struct launch_plan *plan)
{
    const char *witness = settings_text(plan->settings, SETTING_log_witness);
    return settings_text(plan->settings, SETTING_webhook) ||
           settings_text(plan->settings, SETTING_otlp_endpoint) ||
           (witness && setting_is_url(witness));
}

static const struct helper_kind {
    const char *name, *option; /* the option gives gloveboxd its end of the socket */
    int (*plan)(struct program *program, const struct launch_plan *plan, int socket, error *err);
} helper_kinds[HELPERS] = {
    [HELPER_EGRESS] = { "glovebox-egress", "--egress", plan_egress },
    [HELPER_NOTIFY] = { "glovebox-notify", "--notify", plan_notify },
};

const char *helper_name(enum helper_id id)
{
    return helper_kinds[id].name;
}

int launch_helper(const struct launch_plan *plan, enum helper_id id, struct launch *launch,
                  error *err)
{
    struct helper *helper = &launch->helpers[id];
    auto_program program = { .death_signal = SIGKILL };
    close_fd(&helper->pidfd);
    helper->pidfd = -1;
    program.log = launch->log >= 0 ? launch->log : plan->log;
    if (helper_kinds[id].plan(&program, plan, helper->socket, err) < 0)
        return -1;
    return program_start(&program, &helper->pid, &helper->pidfd, err);
}

/* Makes the socket between a helper and gloveboxd, which gets its end. Also checks that the helper
 * can be prepared, before anything runs. */
static int pair_helper(enum helper_id id, const struct launch_plan *plan, struct program *daemon,
                       struct launch *launch, error *err)
{
    int pair[2];
    auto_program trial = { 0 };
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket between gloveboxd and %s", helper_kinds[id].name);
    launch->helpers[id].socket = pair[0];
    int given = program_give(daemon, pair[1], err);
    if (given < 0 || helper_kinds[id].plan(&trial, plan, pair[0], err) < 0 ||
        program_add(daemon, err, "%s", helper_kinds[id].option) < 0)
        return -1;
    return program_add(daemon, err, "%d", given);
}

static int pair_helpers(const struct launch_plan *plan, struct program *daemon,
                        struct launch *launch, error *err)
{
    if (plan->network && pair_helper(HELPER_EGRESS, plan, daemon, launch, err) < 0)
        return -1;
    if (settings_text(plan->settings, SETTING_webhook) && program_add(daemon, err, "--webhook") < 0)
        return -1;
    return plan_notifies(plan) ? pair_helper(HELPER_NOTIFY, plan, daemon, launch, err) : 0;
}

static void forget_helpers(struct launch *launch)
{
    for_each(helper, launch->helpers) {
        close_fd(&helper->socket); /* helpers end with gloveboxd */
        helper->socket = -1;
    }
}

/* Starts the helpers. If one fails, everything that runs is ended. */
static int add_helpers(const struct launch_plan *plan, struct launch *launch, error *err)
{
    for (enum helper_id id = 0; id < HELPERS; id++) {
        if (launch->helpers[id].socket < 0 || launch_helper(plan, id, launch, err) == 0)
            continue;
        error cause = *err;
        (void) kill(launch->daemon, SIGTERM);
        launch_end(launch, deadline_in(5000));
        *err = cause;
        return -1;
    }
    return 0;
}

int launch_start(const struct launch_plan *plan, struct launch *ret_launch, error *err)
{
    struct launch launch = launch_none();
    auto_program spawner = { 0 }, daemon = { .death_signal = plan->private ? SIGKILL : SIGTERM };
    auto_templates templates = { 0 };
    struct surroundings here = { .templates = &templates, .privileged = host_grants_privileges() };
    daemon.becomes = here.privileged ? HOST_ID_DAEMON : 0;
    groups_find(&here.places);

    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket between spawner and daemon");
    auto_fd spawner_end = pair[0], daemon_end = pair[1];
    if (templates_find(plan->state, plan->first_template, &templates, err) < 0 ||
        (here.privileged && check_reach(templates.folder, HOST_ID_BASE, err) < 0))
        return -1;
    if (plan->private)
        launch.waker = groups_wake(&here.places);
    auto_fd log =
        plan->log > 0 ? fcntl(plan->log, F_DUPFD_CLOEXEC, 3) : memfd_create("log", MFD_CLOEXEC);
    spawner.log = daemon.log = log;
    if ((log < 0 && fail_os(err, "make a log") < 0) ||
        plan_spawner(&spawner, plan, &here, spawner_end, err) < 0 ||
        plan_daemon(&daemon, plan, &templates, daemon_end, err) < 0 ||
        pair_helpers(plan, &daemon, &launch, err) < 0 ||
        program_start(&spawner, &launch.spawner, &launch.spawner_pidfd, err) < 0) {
        forget_helpers(&launch);
        wait_for_waker(&launch);
        return -1;
    }
    if (program_start(&daemon, &launch.daemon, &launch.daemon_pidfd, err) < 0) {
        close_fd(&spawner_end);
        close_fd(&daemon_end); /* the spawner then ends */
        spawner_end = daemon_end = -1;
        launch_end(&launch, deadline_in(5000));
        return -1;
    }
    if (plan->log <= 0)
        launch.log = take_fd(&log);
    *ret_launch = launch;
    return add_helpers(plan, ret_launch, err);
}

/* Waits for one process, and kills it after the time. Returns its waitpid(2) status; 0: killed. */
static int wait_for_program(pid_t *pid, int *pidfd, deadline end)
{
    int status = 0, ready = 1;
    if (*pid > 0) {
        struct pollfd watched = { .fd = *pidfd, .events = POLLIN };
        do
            ready = poll(&watched, 1, (int) deadline_left_ms(end));
        while (ready < 0 && errno == EINTR);
        if (ready <= 0)
            (void) kill(*pid, SIGKILL);
        while (waitpid(*pid, &status, 0) < 0 && errno == EINTR)
            ;
        *pid = 0;
    }
    close_fd(pidfd);
    *pidfd = -1;
    return ready > 0 ? status : 0;
}

void launch_end(struct launch *launch, deadline end)
{
    launch->daemon_status = wait_for_program(&launch->daemon, &launch->daemon_pidfd, end);
    /* The spawner ends after the daemon: it may need a few seconds to remove all sandboxes. */
    deadline later = deadline_in(deadline_left_ms(end) + 6000);
    launch->spawner_status = wait_for_program(&launch->spawner, &launch->spawner_pidfd, later);
    forget_helpers(launch);
    for_each(helper, launch->helpers)
        (void) wait_for_program(&helper->pid, &helper->pidfd, later);
    wait_for_waker(launch);
    close_fd(&launch->log);
    launch->log = -1;
}

/* A line that reports no failure: a notice of the daemon, or a request that came too late. */
static bool is_no_cause(const char *line)
{
    static const char *const beside[] = { " notice ", " debug ", "glovebox-spawner: refused: " };
    for_each(text, beside)
        if (strstr(line, *text))
            return true;
    return false;
}

/* Looks for the first line of the log that begins with `mark`. `ret_last` gets the last line that
 * may report a failure. */
static bool find_complaint(const struct launch *launch, const char *mark, char *ret_line,
                           char *ret_last, size_t size)
{
    char text[8192] = "";
    ssize_t got = launch->log < 0 ? -1 : pread(launch->log, text, sizeof text - 1, 0);
    text[got > 0 ? got : 0] = '\0';
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (is_no_cause(line))
            continue;
        (void) snprintf(ret_last, size, "%s", line);
        if (strncmp(line, mark, strlen(mark)) == 0) {
            (void) snprintf(ret_line, size, "%s", line + strlen(mark));
            return true;
        }
    }
    return false;
}

bool launch_has_complained(const struct launch *launch, error *err)
{
    char line[sizeof err->text], last[sizeof err->text];
    if (!find_complaint(launch, "glovebox-spawner: ", line, last, sizeof line))
        return false;
    (void) fail(err, ERR_UNAVAILABLE, "%s", line);
    return true;
}

/* The spawner's lines first: when it has ended, the daemon's only say that. */
int launch_cause(const struct launch *launch, error *err)
{
    static const char *const marks[] = { "glovebox-spawner: ", "glovebox: " };
    char line[sizeof err->text], last[sizeof err->text] = "";
    for_each(mark, marks)
        if (find_complaint(launch, *mark, line, last, sizeof line))
            return fail(err, ERR_UNAVAILABLE, "%s", line);
    if (last[0])
        return fail(err, ERR_UNAVAILABLE, "gloveboxd ended: %s", last);
    return fail(err, ERR_UNAVAILABLE, "gloveboxd ended without a message; run: glovebox doctor");
}
