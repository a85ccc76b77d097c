/* supervisor.c - the parent of gloveboxd and the spawner: one poll(2) for both and for signals.
 *
 *   started --one of them ends--> ending the other --> (early: waiting 0.1 to 1.6 s) --> started
 *      |
 *      +------------ SIGTERM: gloveboxd drains ----------> both ended: leave
 */
#include "supervisor/supervisor.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/signals.h"
#include "base/table.h"
#include "supervisor/installed_templates.h"
#include "supervisor/launch.h"
#include "supervisor/listen_sockets.h"
#include "supervisor/measure.h"
#include "supervisor/package_mirrors.h"
#include "supervisor/sd_notify.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/wait.h>

enum {
    FIRST_PAUSE_MS = 100,
    HELPER_PAUSE_MS = 1000,
    LONGEST_PAUSE_MS = 1600,
    STEADY_MS = 10000, /* programs that ran for this long are started again at once */
    EARLY_DEATHS_MAX = 5,
    DRAIN_MS = 60000,
    LOOK_MS = 3600000,
    RELOAD_MS = 5000,
    RESTART_TEXT = 512,
    WATCH_MS = 5000,            /* how often to check that gloveboxd has sent a sign of life */
    SILENT_MS = 30000,          /* how long it may send none (daemon/liveness.h) */
    ROOM_MIN = 8 * 1024 * 1024, /* with less, a full disk may be why the daemon does not start */
};

struct supervisor {
    const struct supervised *service;
    char daemon_settings[SETTINGS_TEXT_MAX]; /* the last that gloveboxd accepted */
    const char *path;                        /* of our own socket; NULL: none, or removed */
    int control; /* our end of the socket to gloveboxd; -1: it does not run */
    struct launch_plan plan;
    struct launch launch;
    int signals;
    bool leaving;
    int early_deaths;
    bool has_served; /* gloveboxd was ready once, so its start is not why it ends now */
    int64_t pause_ms;
    struct {
        int64_t tried_ms; /* the last time that it was started again; 0: never */
        deadline next;    /* while it does not run: when to try again */
        bool has_failed;  /* a restart failed since it ended, and that was logged */
    } returns[HELPERS];
    struct measuring measuring;
    const char *misconfigured; /* the program that is; NULL: none */
    bool has_spoken;           /* this gloveboxd has sent a sign of life */
    int64_t silent_ms;         /* time since the last one */
};

static void say(const char *what)
{
    (void) fprintf(stderr, "glovebox serve: %s\n", what);
}

/* Reads a message of gloveboxd: "ready", or the result of a reload. False: there is none. */
static bool hear_daemon(const struct supervisor *supervisor, char *text, size_t size)
{
    ssize_t got = recv(supervisor->control, text, size - 1, MSG_DONTWAIT);
    text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

static void take_word(struct supervisor *supervisor, const char *said);

/* Sends gloveboxd new settings, and has it read its policies again; it logs the result. Returns
 * whether it accepted the settings. */
static bool offer_settings(struct supervisor *supervisor, const char *text)
{
    char answer[64];
    deadline end = deadline_in(RELOAD_MS);
    if (supervisor->control < 0 || send(supervisor->control, text, strlen(text), MSG_NOSIGNAL) < 0)
        return false;
    while (!deadline_has_passed(end)) {
        struct pollfd watched = { .fd = supervisor->control, .events = POLLIN };
        if (poll(&watched, 1, (int) deadline_left_ms(end)) <= 0 ||
            !hear_daemon(supervisor, answer, sizeof answer))
            return false;
        bool is_taken = strcmp(answer, "taken") == 0;
        if (is_taken || strcmp(answer, "refused") == 0)
            return is_taken;
        take_word(supervisor, answer);
    }
    return false;
}

/* If the host sets cannot be written, those of the last start stay. A policy that names a missing
 * set fails with a message. */
static void write_sets(const struct supervisor *supervisor)
{
    error err;
    if (host_sets_write(supervisor->plan.state, &err) < 0)
        say(err.text);
}

static void reload(struct supervisor *supervisor)
{
    static char fresh[SETTINGS_TEXT_MAX];
    char restart[RESTART_TEXT] = "";
    error err;
    manager_tell("RELOADING=1");
    write_sets(supervisor);
    if (supervisor->service->read_again(supervisor->service->context, fresh, restart,
                                        sizeof restart, &err) < 0) {
        (void) fprintf(stderr, "glovebox serve: config.refused: %s; nothing was changed\n",
                       err.text);
        (void) snprintf(fresh, sizeof fresh, SETTINGS_REFUSED "%s", err.text);
        (void) offer_settings(supervisor, fresh); /* for `glovebox status` */
    } else {
        if (restart[0])
            (void) fprintf(stderr, "glovebox serve: config.needs_restart: %s\n", restart);
        if (offer_settings(supervisor, fresh))
            memcpy(supervisor->daemon_settings, fresh, sizeof supervisor->daemon_settings);
    }
    manager_tell("READY=1");
}

/* Closes the listening sockets, so that new clients are refused at once. At the sockets of a
 * service manager they wait for the next start. */
static void close_doors(struct supervisor *supervisor)
{
    if (!supervisor->path)
        return;
    (void) unlink(supervisor->path); /* first: a caller that is refused may start anew */
    supervisor->path = NULL;
    for (size_t i = 0; i < supervisor->plan.listen_count; i++)
        (void) shutdown(supervisor->plan.listens[i], SHUT_RDWR); /* also for gloveboxd's copies */
}

static void leave(struct supervisor *supervisor)
{
    manager_tell("STOPPING=1");
    close_doors(supervisor);
    if (supervisor->launch.daemon > 0)
        (void) kill(supervisor->launch.daemon, SIGTERM); /* the second one ends its runs */
    supervisor->leaving = true;
}

/* The first signal asks gloveboxd to drain, the second ends it. */
static void take_signal(struct supervisor *supervisor)
{
    struct signalfd_siginfo info;
    if (read(supervisor->signals, &info, sizeof info) != sizeof info)
        return;
    if (info.ssi_signo == SIGHUP) {
        reload(supervisor);
        return;
    }
    if (!supervisor->leaving)
        say("leaving; runs under way come to their end first");
    leave(supervisor);
}

/* Starts a helper again. When glovebox-egress ends, runs only lose their connections, and the
 * sockets that listen in their sandboxes close. A second between two attempts, so that a helper
 * that cannot run does not use a whole processor. */
static void reap_helper(struct supervisor *supervisor, enum helper_id id)
{
    struct helper *helper = &supervisor->launch.helpers[id];
    int64_t rested_ms = now_ms() - supervisor->returns[id].tried_ms;
    int status = 0;
    (void) waitpid(helper->pid, &status, 0);
    close_fd(&helper->pidfd);
    helper->pid = 0;
    helper->pidfd = -1;
    if (supervisor->leaving)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MISCONFIGURED &&
        supervisor->returns[id].tried_ms == 0) {
        supervisor->misconfigured = helper_name(id);
        supervisor->leaving = true;
        (void) kill(supervisor->launch.daemon, SIGTERM);
        return;
    }
    supervisor->returns[id].has_failed = false;
    supervisor->returns[id].next = deadline_in(rested_ms < HELPER_PAUSE_MS ? HELPER_PAUSE_MS : 0);
    (void) fprintf(stderr, "glovebox serve: %s ended; starting it again\n", helper_name(id));
}

static bool is_away(const struct supervisor *supervisor, enum helper_id id)
{
    const struct helper *helper = &supervisor->launch.helpers[id];
    return !supervisor->leaving && helper->socket >= 0 && helper->pid == 0;
}

static void try_helper(struct supervisor *supervisor, enum helper_id id)
{
    error err;
    supervisor->returns[id].tried_ms = now_ms();
    if (launch_helper(&supervisor->plan, id, &supervisor->launch, &err) == 0)
        return;
    if (!supervisor->returns[id].has_failed)
        (void) fprintf(stderr, "glovebox serve: %s; trying again every second\n", err.text);
    supervisor->returns[id].has_failed = true;
    supervisor->returns[id].next = deadline_in(HELPER_PAUSE_MS);
}

/* Starts helpers that are due. Returns the time until the next is due, at most `max_ms`. */
static int return_helpers(struct supervisor *supervisor, int64_t max_ms)
{
    for (enum helper_id id = 0; id < HELPERS; id++) {
        if (is_away(supervisor, id) && deadline_has_passed(supervisor->returns[id].next))
            try_helper(supervisor, id);
        int64_t left =
            is_away(supervisor, id) ? deadline_left_ms(supervisor->returns[id].next) : max_ms;
        max_ms = left < max_ms ? left : max_ms;
    }
    return (int) max_ms;
}

static void take_word(struct supervisor *supervisor, const char *said)
{
    if (strcmp(said, "ready") == 0) {
        const struct settings *settings = supervisor->service->settings;
        const char *path = supervisor->path;
        const char *listen = path ? settings_text(settings, SETTING_listen) : NULL;
        if (!supervisor->has_served && !supervisor->leaving)
            (void) fprintf(stderr, "glovebox serve: listening on %s%s%s\n",
                           path ? path : "the sockets of the service manager",
                           listen ? " and " : "", listen ? listen : "");
        if (settings->list[SETTING_measure_templates].number != 0 && !supervisor->has_served)
            measuring_begin(&supervisor->measuring, supervisor->plan.state);
        supervisor->has_served = true;
        manager_tell("READY=1\nSTATUS=runs are taken");
    }
    if (strcmp(said, "alive") == 0)
        manager_tell("WATCHDOG=1");
    if (strcmp(said, "idle") == 0 && !supervisor->leaving) {
        say("not used for as long as idle_exit says; leaving");
        leave(supervisor);
    }
    supervisor->silent_ms = 0;
    supervisor->has_spoken = true;
}

/* Kills a gloveboxd that hangs; it is started again like one that has ended. Only time in which
 * this process has waited counts, not time in which the machine was suspended. */
static void end_if_silent(struct supervisor *supervisor, int64_t waited_ms)
{
    if (!supervisor->has_spoken || supervisor->leaving)
        return;
    supervisor->silent_ms += waited_ms > WATCH_MS ? WATCH_MS : waited_ms;
    if (supervisor->silent_ms < SILENT_MS)
        return;
    say("gloveboxd gave no sign of life for 30 s; ending it");
    supervisor->has_spoken = false;
    (void) kill(supervisor->launch.daemon, SIGKILL);
}

/* Waits until one of the two programs has ended, or `end` has passed. Returns whether one has. */
static bool watch_pair(struct supervisor *supervisor, deadline end)
{
    const struct helper *helpers = supervisor->launch.helpers;
    for (;;) {
        int64_t left = deadline_left_ms(end);
        int wait_ms = return_helpers(supervisor, left > WATCH_MS ? WATCH_MS : left);
        int64_t before_ms = now_ms();
        struct pollfd watched[] = { { .fd = supervisor->signals, .events = POLLIN },
                                    { .fd = supervisor->launch.daemon_pidfd, .events = POLLIN },
                                    { .fd = supervisor->launch.spawner_pidfd, .events = POLLIN },
                                    { .fd = supervisor->control, .events = POLLIN },
                                    { .fd = helpers[HELPER_EGRESS].pidfd, .events = POLLIN },
                                    { .fd = helpers[HELPER_NOTIFY].pidfd, .events = POLLIN },
                                    { .fd = supervisor->measuring.pidfd, .events = POLLIN } };
        if (poll(watched, COUNT_OF(watched), wait_ms) < 0 && errno != EINTR)
            return true;
        char said[64];
        bool was_leaving = supervisor->leaving;
        if (watched[3].revents && !hear_daemon(supervisor, said, sizeof said)) {
            close_fd(&supervisor->control); /* gloveboxd ends */
            supervisor->control = -1;
        } else if (watched[3].revents) {
            take_word(supervisor, said);
        }
        end_if_silent(supervisor, now_ms() - before_ms);
        if (watched[0].revents)
            take_signal(supervisor);
        if (watched[1].revents || watched[2].revents)
            return true;
        for (enum helper_id id = 0; id < HELPERS; id++)
            if (watched[4 + id].revents)
                reap_helper(supervisor, id);
        if (watched[4 + HELPERS].revents)
            measuring_end(&supervisor->measuring);
        if (supervisor->leaving && !was_leaving)
            end = deadline_in(DRAIN_MS);
        if (deadline_has_passed(end))
            return false;
    }
}

/* Reports a program that a signal has ended, since it could not log that itself. */
static void say_signal(const char *program, int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    const char *name = sigdescr_np(number);
    if (number != 0)
        (void) fprintf(stderr, "glovebox serve: %s was ended by signal %d (%s)\n", program, number,
                       name ? name : "?");
}

/* Starts both programs and waits until both have ended. Returns -1 if they could not be started. */
static int live_once(struct supervisor *supervisor, error *err)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket to gloveboxd");
    auto_fd theirs = pair[1];
    close_fd(&supervisor->control);
    supervisor->control = pair[0];
    supervisor->plan.control = theirs;
    supervisor->plan.daemon_settings = supervisor->daemon_settings;
    write_sets(supervisor);
    if (launch_start(&supervisor->plan, &supervisor->launch, err) < 0)
        return -1;
    close_fd(&theirs);
    theirs = -1;
    int64_t start = now_ms();
    bool ended;
    supervisor->silent_ms = 0;
    supervisor->has_spoken = false;
    manager_tell("WATCHDOG=1"); /* the start gets its own time */
    do
        ended = watch_pair(supervisor, deadline_in(LOOK_MS));
    while (!ended && !supervisor->leaving);
    /* The spawner ends when the daemon has ended. A daemon without a spawner gets a moment to tell
     * its clients that their runs are lost. */
    if (supervisor->launch.daemon > 0 && !supervisor->leaving)
        (void) kill(supervisor->launch.daemon, SIGTERM);
    launch_end(&supervisor->launch, deadline_in(supervisor->leaving ? DRAIN_MS : 1000));
    say_signal("gloveboxd", supervisor->launch.daemon_status);
    say_signal("glovebox-spawner", supervisor->launch.spawner_status);
    int status = supervisor->launch.daemon_status;
    if (!supervisor->has_served && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_MISCONFIGURED) {
        supervisor->misconfigured = "gloveboxd";
        supervisor->leaving = true;
    }
    bool was_steady = now_ms() - start >= STEADY_MS;
    supervisor->early_deaths = was_steady ? 0 : supervisor->early_deaths + 1;
    supervisor->pause_ms = was_steady                                    ? 0
                           : supervisor->early_deaths == 1               ? FIRST_PAUSE_MS
                           : supervisor->pause_ms * 2 > LONGEST_PAUSE_MS ? LONGEST_PAUSE_MS
                                                                         : supervisor->pause_ms * 2;
    return 0;
}

/* Is a full disk why the daemon cannot start? It is then tried again until there is room. */
static bool disk_is_full(const struct supervisor *supervisor)
{
    auto_text folder = NULL;
    struct statvfs disk;
    error unused;
    if (launch_state_folder(supervisor->plan.state, &folder, &unused) < 0 ||
        statvfs(folder, &disk) < 0)
        return false;
    return disk.f_bavail * disk.f_frsize < ROOM_MIN || (disk.f_files > 0 && disk.f_favail == 0);
}

static int keep_alive(struct supervisor *supervisor, error *err)
{
    while (!supervisor->leaving) {
        if (live_once(supervisor, err) < 0)
            return -1;
        if (supervisor->leaving)
            break;
        bool is_full = supervisor->early_deaths >= EARLY_DEATHS_MAX && disk_is_full(supervisor);
        if (is_full)
            say("the disk of the state folder is full; make room there, and it starts by itself");
        if (supervisor->early_deaths >= EARLY_DEATHS_MAX && !supervisor->has_served && !is_full)
            return fail(err, ERR_UNAVAILABLE,
                        "gloveboxd or glovebox-spawner ended right after the start %d times; the "
                        "log above says why",
                        EARLY_DEATHS_MAX);
        say("gloveboxd or glovebox-spawner ended; starting both again");
        struct pollfd watched = { .fd = supervisor->signals, .events = POLLIN };
        if (poll(&watched, 1, (int) supervisor->pause_ms) > 0)
            take_signal(supervisor);
    }
    if (supervisor->misconfigured)
        return fail(err, ERR_BAD_REQUEST, "%s cannot use its settings; the log above says why",
                    supervisor->misconfigured);
    return 0;
}

int supervise(const struct supervised *service, error *err)
{
    static struct supervisor supervisor;
    auto_fd signals = -1;
    auto_text path = NULL;
    auto_templates built = { 0 };
    supervisor = (struct supervisor){
        .service = service,
        .control = -1,
        .plan = { .state = settings_text(service->settings, SETTING_state),
                  .slots = (unsigned) service->settings->list[SETTING_slots].number,
                  .settings = service->settings,
                  .network = true,
                  .log = STDERR_FILENO,
                  .first_template = "python" },
        .launch = launch_none(),
        .measuring = { .pidfd = -1 },
    };
    memcpy(supervisor.daemon_settings, service->daemon_settings, sizeof supervisor.daemon_settings);
    sigset_t watched;
    (void) sigemptyset(&watched);
    (void) sigaddset(&watched, SIGTERM);
    (void) sigaddset(&watched, SIGINT);
    (void) sigaddset(&watched, SIGHUP);
    signals_outlive();
    if (pthread_sigmask(SIG_BLOCK, &watched, NULL) != 0 ||
        (signals = signalfd(-1, &watched, SFD_CLOEXEC)) < 0)
        return fail_os(err, "watch signals");
    if (listen_sockets_open(service, &supervisor.plan, &path, err) < 0)
        return -1;
    supervisor.signals = signals;
    supervisor.path = path;
    /* Before anything is made in the state folder, which may have been named by mistake. */
    int result = templates_find(supervisor.plan.state, supervisor.plan.first_template, &built, err);
    if (result == 0)
        result = keep_alive(&supervisor, err);
    measuring_end(&supervisor.measuring);
    if (supervisor.path)
        (void) unlink(supervisor.path);
    for (size_t i = 0; i < supervisor.plan.listen_count; i++)
        (void) close(supervisor.plan.listens[i]);
    close_fd(&supervisor.control);
    return result;
}
