/* command_lines.c - the arguments and descriptors that each program gets. */
#include "supervisor/command_lines.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "model/ids.h"
#include "policy/settings.h"
#include "supervisor/host_features.h"
#include "supervisor/install_paths.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PRIVATE_SLOTS = 4, FOLDER_MAX = 1024 };

static int plan_disk(struct program *program, const char *folder, error *err)
{
    unsigned disk_major, disk_minor;
    if (!host_disk_of(folder, &disk_major, &disk_minor))
        return 0;
    if (program_add(program, err, "--disk-major") < 0 ||
        program_add(program, err, "%u", disk_major) < 0 ||
        program_add(program, err, "--disk-minor") < 0)
        return -1;
    return program_add(program, err, "%u", disk_minor);
}

int plan_spawner(struct program *program, const struct launch_plan *plan,
                 const struct surroundings *here, int socket, error *err)
{
    auto_text init = NULL;
    auto_text filter = NULL;
    auto_text loopback_filter = NULL;
    auto_text slots = NULL;
    auto_text python = NULL;
    if (path_of_program("glovebox-spawner", &program->path, err) < 0 ||
        path_of_program("glovebox-init", &init, err) < 0 ||
        path_of_data("seccomp/default.bpf", &filter, err) < 0 ||
        path_of_data("seccomp/loopback.bpf", &loopback_filter, err) < 0 ||
        host_slots_file(&slots, err) < 0)
        return -1;
    if (program_add(program, err, "%s", program->path) < 0 ||
        program_add_fd(program, "--daemon", socket, err) < 0 ||
        program_add_pair(program, "--init", init, err) < 0 ||
        program_add_pair(program, "--filter", filter, err) < 0 ||
        program_add_pair(program, "--filter", loopback_filter, err) < 0 ||
        program_add_pair(program, "--slots-file", slots, err) < 0 ||
        program_add(program, err, "--slots") < 0 ||
        program_add(program, err, "%u", plan->slots ? plan->slots : PRIVATE_SLOTS) < 0)
        return -1;
    /* For a single run, warmed interpreters cost more than they save. */
    bool has_zygotes = !plan->private || plan->warm;
    if (has_zygotes && (path_of_python(&python, err) < 0 ||
                        program_add_pair(program, "--python", python, err) < 0))
        return -1;
    for (size_t index = 0; index < here->places.count; index++)
        if (program_add_pair(program, "--group", here->places.argument[index], err) < 0)
            return -1;
    if (program_add_pair(program, "--templates", here->templates->folder, err) < 0 ||
        plan_disk(program, here->templates->folder, err) < 0)
        return -1;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets variables here */
    const char *disabled = getenv("GLOVEBOX_DISABLE_WALL");
    if (disabled && *disabled && program_add_pair(program, "--disable-wall", disabled, err) < 0)
        return -1; /* only a spawner of a test build accepts this option */
    return here->privileged ? 0 : program_add(program, err, "--unprivileged");
}

/* The daemon's user would fail later, and could not name the folder. */
static int check_readable(const struct program *program, const char *folder, error *err)
{
    struct stat facts;
    if (program->becomes == 0 || stat(folder, &facts) < 0 || facts.st_uid == program->becomes ||
        (facts.st_mode & (S_IRGRP | S_IROTH)))
        return 0;
    return fail(err, ERR_UNAVAILABLE,
                "policies in '%s' can be read by its owner alone, not by gloveboxd; do: chmod o+rx",
                folder);
}

static int plan_policies(struct program *program, const char *state, error *err)
{
    auto_text folders = NULL;
    if (path_of_policies_of(state, &folders, err) < 0)
        return -1;
    char text[FOLDER_MAX] = "";
    char *save = NULL;
    for (char *folder = strtok_r(folders, ":", &save); folder;
         folder = strtok_r(NULL, ":", &save)) {
        size_t used = strlen(text);
        if (used > 0)
            (void) snprintf(text + used, sizeof text - used, ":");
        if (check_readable(program, folder, err) < 0 ||
            program_folder(program, folder, text, sizeof text, err) < 0)
            return -1;
    }
    return program_add_pair(program, "--policies", text, err);
}

/* Makes the folder of gloveboxd below `above`; NULL if it cannot be made or used. */
static char *make_daemon_folder(const char *above, error *err)
{
    auto_text folder = NULL;
    if (format_text(&folder, err, "%s/daemon", above) < 0 || make_folder(folder, 0700, err) < 0)
        return NULL;
    if (access(folder, W_OK | X_OK) < 0) {
        (void) fail_os(err, "use '%s' for the log of receipts; give another --state", folder);
        return NULL;
    }
    return take_text(&folder);
}

/* The folder belongs to gloveboxd, whose user does not own the templates. If `state` belongs to
 * another user (an ordinary user with the templates of the system), it is the one in the user's own
 * state folder, so that receipts are always kept. */
int launch_state_folder(const char *state, char **ret_folder, error *err)
{
    auto_text above = NULL;
    auto_text own = NULL;
    if (path_of_state(state, &above, err) < 0)
        return -1;
    bool is_privileged = host_grants_privileges();
    auto_text folder = make_daemon_folder(above, err);
    if (!folder && !is_privileged && path_of_own_state(&own, err) == 0)
        folder = make_daemon_folder(own, err);
    if (!folder)
        return -1;
    if (is_privileged && lchown(folder, HOST_ID_DAEMON, HOST_ID_DAEMON) < 0)
        return fail_os(err, "give '%s' to gloveboxd", folder);
    *ret_folder = take_text(&folder);
    return 0;
}

static int plan_state(struct program *program, const char *state, error *err)
{
    auto_text folder = NULL;
    if (launch_state_folder(state, &folder, err) < 0)
        return -1;
    char text[FOLDER_MAX] = "";
    if (program_folder(program, folder, text, sizeof text, err) < 0)
        return -1;
    return program_add_pair(program, "--state", text, err);
}

/* The tables of system calls, whose hashes gloveboxd writes into receipts. */
static int plan_filters(struct program *program, error *err)
{
    static const char *const names[] = { "default", "loopback" };
    for_each(name, names) {
        auto_text path = NULL;
        char file[64];
        (void) snprintf(file, sizeof file, "seccomp/%s.bpf", *name);
        if (path_of_data(file, &path, err) < 0)
            return -1;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return fail_os(err, "open '%s'", path);
        int number = program_give(program, fd, err);
        if (number < 0 || program_add(program, err, "--filter") < 0 ||
            program_add(program, err, "%s=%d", *name, number) < 0)
            return -1;
    }
    return 0;
}

/* Adds the settings of a program (SETTING_TO_x): rows of settings.def. */
static int plan_settings(struct program *program, const struct settings *settings, unsigned to,
                         error *err)
{
    for (enum setting_id id = 0; id < SETTINGS; id++) {
        const struct setting_row *row = &setting_rows[id];
        const char *value = settings_text(settings, id);
        char option[64];
        if (!(row->programs & to) || !value)
            continue;
        (void) snprintf(option, sizeof option, "--%s", row->flag);
        if ((row->type == SETTING_FILE ? program_add_file : program_add_pair)(program, option,
                                                                              value, err) < 0)
            return -1;
    }
    return 0;
}

int plan_daemon(struct program *program, const struct launch_plan *plan,
                const struct templates *templates, int socket, error *err)
{
    if (path_of_program("gloveboxd", &program->path, err) < 0 ||
        program_add(program, err, "%s", program->path) < 0 ||
        program_add_fd(program, "--spawner", socket, err) < 0)
        return -1;
    for (size_t index = 0; index < plan->connection_count; index++)
        if (program_add_fd(program, "--connection", plan->connections[index], err) < 0)
            return -1;
    for (size_t index = 0; index < plan->listen_count; index++)
        if (program_add_fd(program, "--listen-fd", plan->listens[index], err) < 0)
            return -1;
    if (plan_policies(program, plan->state, err) < 0)
        return -1;
    char folder[FOLDER_MAX] = "";
    if (program_folder(program, templates->folder, folder, sizeof folder, err) < 0 ||
        program_add_pair(program, "--templates", folder, err) < 0 ||
        program_add_pair(program, "--first-template", templates->names[0], err) < 0)
        return -1;
    if ((plan->daemon_settings &&
         program_add_pair(program, "--settings", plan->daemon_settings, err) < 0) ||
        (plan->control > 0 && program_add_fd(program, "--control", plan->control, err) < 0))
        return -1;
    if (program_add(program, err, "--owner") < 0 ||
        program_add(program, err, "%u", geteuid()) < 0 || plan_filters(program, err) < 0 ||
        (plan->private && program_add(program, err, "--private") < 0) ||
        (plan->warm && program_add(program, err, "--warm") < 0))
        return -1;
    return plan_state(program, plan->state, err);
}

static int plan_outbound(struct program *program, const char *name, int socket, uid_t user,
                         error *err)
{
    program->becomes = host_grants_privileges() ? user : 0;
    if (path_of_program(name, &program->path, err) < 0 ||
        program_add(program, err, "%s", program->path) < 0)
        return -1;
    return program_add_fd(program, "--daemon", socket, err);
}

int plan_egress(struct program *program, const struct launch_plan *plan, int socket, error *err)
{
    if (plan_outbound(program, "glovebox-egress", socket, HOST_ID_EGRESS, err) < 0)
        return -1;
    return plan_settings(program, plan->settings, SETTING_TO_EGRESS, err);
}

int plan_notify(struct program *program, const struct launch_plan *plan, int socket, error *err)
{
    if (plan_outbound(program, "glovebox-notify", socket, HOST_ID_NOTIFY, err) < 0)
        return -1;
    return plan_settings(program, plan->settings, SETTING_TO_NOTIFY, err);
}
