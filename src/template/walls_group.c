/* walls_group.c - a control group for each program of a build: "build-PID" next to those of
 * sandboxes, v2 or v1, removed when the program has ended. */
#include "template/walls.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "supervisor/cgroup_setup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static const char prefix[] = "build-";

static int write_file(const char *folder, const char *name, const char *text)
{
    char path[512];
    (void) snprintf(path, sizeof path, "%s/%s", folder, name);
    auto_fd file = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    return file >= 0 && write(file, text, strlen(text)) >= 0 ? 0 : -1;
}

static void remove_folder(const char *folder)
{
    static const struct timespec pause = { .tv_nsec = 10000000 }; /* 10 ms */
    /* Killed processes are charged to it for a moment more. */
    for (int i = 0; i < 100 && rmdir(folder) < 0 && errno == EBUSY; i++)
        (void) nanosleep(&pause, NULL);
}

/* Removes groups of builds that were killed. */
static void sweep(const char *above)
{
    char path[400];
    DIR *folder = opendir(above);
    if (!folder)
        return;
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own */
    for (struct dirent *entry = readdir(folder); entry; entry = readdir(folder)) {
        if (strncmp(entry->d_name, prefix, sizeof prefix - 1) != 0)
            continue;
        long pid = strtol(entry->d_name + sizeof prefix - 1, NULL, 10);
        bool is_dead = pid > 0 && kill((pid_t) pid, 0) < 0 && errno == ESRCH;
        if (is_dead && snprintf(path, sizeof path, "%s/%.60s", above, entry->d_name) > 0)
            (void) rmdir(path);
    }
    (void) closedir(folder);
}

/* cgroup v2: the parent enables each controller for its children. */
static void enable_controllers(const char *above)
{
    static const char *const controllers[] = { "+memory", "+pids" };
    for_each(controller, controllers) {
        (void) write_file(above, "../cgroup.subtree_control", *controller);
        (void) write_file(above, "cgroup.subtree_control", *controller);
    }
}

static int write_bounds(const char *kind, const char *folder)
{
    char memory[32], processes[16];
    bool is_unified = strcmp(kind, "unified") == 0;
    (void) snprintf(memory, sizeof memory, "%dM", BUILD_MEMORY_MIB);
    (void) snprintf(processes, sizeof processes, "%d", BUILD_PROCESSES);
    if (is_unified)
        (void) write_file(folder, "memory.swap.max", "0"); /* absent without swap accounting */
    if (is_unified && write_file(folder, "memory.max", memory) < 0)
        return -1;
    if (strcmp(kind, "memory") == 0 && write_file(folder, "memory.limit_in_bytes", memory) < 0)
        return -1;
    if (is_unified || strcmp(kind, "pids") == 0)
        return write_file(folder, "pids.max", processes);
    return 0;
}

static int make_in(struct build_group *group, const char *place, error *err)
{
    static unsigned number; /* one thread */
    char kind[16];
    const char *above = strchr(place, '=') + 1;
    (void) snprintf(kind, sizeof kind, "%.*s", (int) (above - 1 - place), place);
    if (group->count == BUILD_GROUP_PLACES ||
        (strcmp(kind, "memory") != 0 && strcmp(kind, "pids") != 0 && strcmp(kind, "unified") != 0))
        return 0;
    char *folder = group->folder[group->count];
    int made;
    do {
        if (mkdir(above, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make control group '%s'", above);
        sweep(above);
        if (strcmp(kind, "unified") == 0)
            enable_controllers(above);
        (void) snprintf(folder, sizeof group->folder[0], "%.280s/%s%d.%u", above, prefix, getpid(),
                        number++);
        made = mkdir(folder, 0755);
        /* EEXIST: a build that was killed in another pid namespace may have had our pid. ENOENT:
         * another instance has removed the group above, which was empty. */
    } while (made < 0 && (errno == EEXIST || errno == ENOENT));
    if (made < 0)
        return fail_os(err, "make control group '%s'", folder);
    group->count++;
    if (write_bounds(kind, folder) < 0)
        return fail_os(err, "bound control group '%s'", folder);
    return 0;
}

int build_group_make(struct build_group *ret_group, error *err)
{
    static struct group_places places; /* one thread; found once */
    static bool is_found;
    if (!is_found)
        groups_find(&places);
    is_found = true;
    ret_group->count = 0;
    for (size_t index = 0; index < places.count; index++)
        if (make_in(ret_group, places.argument[index], err) < 0) {
            build_group_done(ret_group);
            return -1;
        }
    return 0;
}

int build_group_join(const struct build_group *group, pid_t child, error *err)
{
    char pid[16];
    (void) snprintf(pid, sizeof pid, "%d", child);
    for (unsigned i = 0; i < group->count; i++)
        if (write_file(group->folder[i], "cgroup.procs", pid) < 0)
            return fail_os(err, "join control group '%s'", group->folder[i]);
    return 0;
}

void build_group_done(struct build_group *group)
{
    for (unsigned i = 0; i < group->count; i++)
        remove_folder(group->folder[i]);
    group->count = 0;
}
