/* doctor_cgroups.c - tries control groups: makes a test group in the folders that glovebox-spawner
 * will use, sets a limit, puts a process into it, and removes it. */
#include "cli/operate/doctor.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "supervisor/cgroup_setup.h"
#include "supervisor/install_paths.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

/* A test group. */
struct trial_group {
    bool unified;
    int leaf;             /* its directory */
    char above[PATH_MAX]; /* glovebox's folder above; ours if `made_above` */
    char name[32];
    bool made_above;
};

static int write_file(int directory, const char *name, const char *text, error *err)
{
    auto_fd file = openat(directory, name, O_WRONLY | O_CLOEXEC);
    if (file < 0 || write(file, text, strlen(text)) != (ssize_t) strlen(text))
        return fail_os(err, "write '%s' to %s", text, name);
    return 0;
}

static int read_file(int directory, const char *name, char *text, size_t size)
{
    ssize_t got = read_text_at(directory, name, text, size);
    text[strcspn(text, "\n")] = '\0';
    return got < 0 ? -1 : 0;
}

/* Returns the folder for this controller, v1 or v2; NULL if the machine or the user has none. */
static const char *find_place(const struct group_places *places, const char *v1_kind,
                              bool *ret_unified)
{
    for (size_t i = 0; i < places->count; i++) {
        const char *equals = strchr(places->argument[i], '=');
        size_t length = (size_t) (equals - places->argument[i]);
        *ret_unified = strncmp(places->argument[i], "unified=", 8) == 0;
        if (*ret_unified ||
            (length == strlen(v1_kind) && strncmp(places->argument[i], v1_kind, length) == 0))
            return equals + 1;
    }
    return NULL;
}

/* In v2 a controller is available in children only if cgroup.subtree_control enables it. */
static void hand_down(const char *folder, const char *above, const char *controller)
{
    const char *const folders[] = { above, folder };
    char order[16];
    (void) snprintf(order, sizeof order, "+%s", controller);
    for_each(each, folders) {
        auto_fd directory = open(*each, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        error ignored;
        if (directory >= 0)
            (void) write_file(directory, "cgroup.subtree_control", order, &ignored);
    }
}

static int group_make(struct trial_group *group, const char *v1_kind, const char *v2_name,
                      error *err)
{
    struct group_places places;
    char leaf[PATH_MAX];
    int made;
    groups_find(&places);
    const char *place = find_place(&places, v1_kind, &group->unified);
    if (!place)
        return fail(err, ERR_UNAVAILABLE, "no hierarchy with the controller %s can be written here",
                    v2_name);
    (void) snprintf(group->above, sizeof group->above, "%s", place);
    (void) snprintf(group->name, sizeof group->name, "doctor-%d", getpid());
    (void) snprintf(leaf, sizeof leaf, "%s/%s", place, group->name);
    do { /* an instance that ends removes the empty group above: ENOENT */
        group->made_above = mkdir(group->above, 0755) == 0;
        if (!group->made_above && errno != EEXIST)
            return fail_os(err, "make '%s'", group->above);
        made = mkdir(leaf, 0755);
    } while (made < 0 && errno == ENOENT);
    if (made < 0 && errno != EEXIST)
        return fail_os(err, "make a group in '%s'", group->above);
    if (group->unified) {
        char parent[PATH_MAX];
        (void) snprintf(parent, sizeof parent, "%s", place);
        *strrchr(parent, '/') = '\0';
        hand_down(place, parent, v2_name);
    }
    group->leaf = open(leaf, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return group->leaf < 0 ? fail_os(err, "open a group in '%s'", group->above) : 0;
}

static void group_remove(struct trial_group *group)
{
    close_fd(&group->leaf);
    auto_fd above = open(group->above, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (above >= 0)
        (void) unlinkat(above, group->name, AT_REMOVEDIR);
    if (group->made_above)
        (void) rmdir(group->above);
}

static int try_memory(const struct trial_group *group, error *err)
{
    const char *name = group->unified ? "memory.max" : "memory.limit_in_bytes";
    char text[64];
    if (write_file(group->leaf, name, "16777216", err) < 0)
        return -1;
    if (read_file(group->leaf, name, text, sizeof text) < 0 || strcmp(text, "16777216") != 0)
        return fail(err, ERR_SYSTEM, "%s is '%s' after it was set to 16777216", name, text);
    return group->unified
               ? 0
               : write_file(group->leaf, "memory.kmem.tcp.limit_in_bytes", "2097152", err);
}

/* Puts a child into a group that may hold one process; the child must fail to fork. */
static int try_pids(const struct trial_group *group, error *err)
{
    if (write_file(group->leaf, "pids.max", "1", err) < 0)
        return -1;
    pid_t child = fork();
    if (child < 0)
        return fail_os(err, "start a child");
    if (child == 0) {
        error ignored;
        if (write_file(group->leaf, "cgroup.procs", "0", &ignored) < 0)
            _exit(2);
        pid_t second = fork();
        if (second == 0)
            _exit(0);
        _exit(second < 0 && errno == EAGAIN ? 0 : 3);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return fail(err, ERR_SYSTEM,
                    WEXITSTATUS(status) == 2 ? "a process cannot join a group"
                                             : "a process forked past pids.max");
    return 0;
}

static int try_cpu(const struct trial_group *group, error *err)
{
    return group->unified ? write_file(group->leaf, "cpu.max", "50000 100000", err)
                          : write_file(group->leaf, "cpu.cfs_quota_us", "50000", err);
}

/* The kernel limits the rate of a whole disk only; this tries the one with the state folder, where
 * the templates are. */
static int try_io(const struct trial_group *group, error *err)
{
    auto_text state = NULL;
    struct stat folder;
    if (path_of_state(NULL, &state, err) < 0)
        return -1;
    for (char *slash = state + strlen(state); stat(state, &folder) < 0;
         slash = strrchr(state, '/')) {
        if (!slash || slash == state)
            return fail_os(err, "look at the state folder");
        *slash = '\0';
    }
    unsigned disk_major = major(folder.st_dev), disk_minor = minor(folder.st_dev);
    char rate[64];
    (void) snprintf(rate, sizeof rate, group->unified ? "%u:%u rbps=1048576" : "%u:%u 1048576",
                    disk_major, disk_minor);
    if (disk_major == 0)
        return fail(err, ERR_UNAVAILABLE, "%s lies on no disk of its own", state);
    return write_file(group->leaf, group->unified ? "io.max" : "blkio.throttle.read_bps_device",
                      rate, err);
}

static void check_group(struct finding *finding, const char *v1_kind, const char *v2_name,
                        int (*trial)(const struct trial_group *, error *))
{
    struct trial_group group = { .leaf = -1 };
    error err = { 0 };
    int made = group_make(&group, v1_kind, v2_name, &err);
    int result = made < 0 ? -1 : trial(&group, &err);
    if (group.name[0])
        group_remove(&group);
    if (result == 0) {
        found_ok(finding, "%s", group.unified ? "cgroup v2" : "cgroup v1");
        return;
    }
    bool is_watched = strcmp(v2_name, "memory") == 0 || strcmp(v2_name, "pids") == 0;
    found_weak(finding, HEALTH_DEGRADED, "%s%s", err.text,
               made < 0 && is_watched
                   ? "; glovebox-init looks every 20 ms and ends what is over the limit"
                   : "");
    if (made == 0)
        suggest(
            finding,
            "this kernel's %s controller cannot do it; runs that do not ask for it lose nothing",
            v2_name);
    else if (geteuid() != 0)
        suggest(finding, "systemd-run --user --scope -p Delegate=yes glovebox …, or run as root");
    else
        suggest(finding, "mount control groups writable: mount -t cgroup2 none /sys/fs/cgroup; in "
                         "a container run it "
                         "with --privileged or --cgroupns=private and a writable /sys/fs/cgroup");
}

void check_group_memory(struct finding *finding)
{
    check_group(finding, "memory", "memory", try_memory);
}

void check_group_pids(struct finding *finding)
{
    check_group(finding, "pids", "pids", try_pids);
}

void check_group_cpu(struct finding *finding)
{
    check_group(finding, "cpu", "cpu", try_cpu);
}

void check_group_io(struct finding *finding)
{
    check_group(finding, "blkio", "io", try_io);
}
