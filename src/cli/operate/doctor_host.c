/* doctor_host.c - checks files of the host: glovebox's programs, a block of ids that no other user
 * has, a state folder with free space, templates. */
#include "cli/operate/doctor.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"
#include "model/ids.h"
#include "supervisor/install_paths.h"
#include "supervisor/path_access.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPACE_FOR_TEMPLATES_MIB = 2048 };

void check_programs(struct finding *finding)
{
    static const char *const programs[] = { "glovebox-spawner", "glovebox-init", "gloveboxd" };
    static const char *const data[] = { "seccomp/default.bpf", "policies" };
    error err = { 0 };
    int result = 0;
    for_each(name, programs) {
        auto_text path = NULL;
        if (result == 0)
            result = path_of_program(*name, &path, &err);
    }
    for_each(name, data) {
        auto_text path = NULL;
        if (result == 0)
            result = path_of_data(*name, &path, &err);
    }
    auto_text python = NULL;
    if (result == 0)
        result = path_of_python(&python, &err);
    if (result == 0) {
        found_ok(finding, "version %s", GLOVEBOX_VERSION);
        return;
    }
    found_weak(finding, HEALTH_MISSING, "%s", err.text);
    suggest(finding, "build all of it (make), or install it again (make install)");
}

/* Maps the whole block of ids into the user namespace of a child, as the spawner does. */
static int try_block(error *err)
{
    int ready[2], go[2];
    if (pipe2(ready, O_CLOEXEC) < 0 || pipe2(go, O_CLOEXEC) < 0)
        return fail_os(err, "make pipes");
    pid_t child = fork();
    if (child < 0)
        return fail_os(err, "start a child");
    if (child == 0) {
        char byte = 0;
        (void) close(go[1]);
        if (unshare(CLONE_NEWUSER) < 0 || write(ready[1], &byte, 1) != 1 ||
            read(go[0], &byte, 1) != 1)
            _exit(1);
        _exit(setresuid(0, 0, 0) < 0 || setresuid(AGENT_ID, AGENT_ID, AGENT_ID) < 0);
    }
    char byte = 0, path[64], map[64];
    (void) close(ready[1]);
    ssize_t got = read(ready[0], &byte, 1);
    (void) snprintf(path, sizeof path, "/proc/%d/uid_map", child);
    (void) snprintf(map, sizeof map, "0 %u %u", (unsigned) HOST_ID_BASE, (unsigned) HOST_ID_COUNT);
    auto_fd file = open(path, O_WRONLY | O_CLOEXEC);
    int result = 0;
    if (got != 1 || file < 0 || write(file, map, strlen(map)) < 0)
        result = fail_os(err, "map ids %u to %u", (unsigned) HOST_ID_BASE,
                         (unsigned) (HOST_ID_BASE + HOST_ID_COUNT - 1));
    if (result == 0 && write(go[1], &byte, 1) != 1)
        result = fail_os(err, "wake the child");
    (void) close(go[1]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (result == 0 && status != 0)
        result = fail(err, ERR_SYSTEM, "a mapped id cannot be taken");
    return result;
}

/* Looks for a range in `path` that overlaps ours; subuid(5): name:first:count. */
static bool range_overlaps(const char *path, char *owner, size_t size)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    char line[256], *end;
    bool found = false;
    while (!found && fgets(line, sizeof line, file)) {
        char *first_text = strchr(line, ':');
        if (!first_text)
            continue;
        *first_text++ = '\0';
        unsigned long long first = strtoull(first_text, &end, 10);
        unsigned long long count = *end == ':' ? strtoull(end + 1, NULL, 10) : 0;
        found = first <= (unsigned long long) HOST_ID_LAST &&
                first + count > (unsigned long long) HOST_ID_BASE;
        if (found)
            (void) snprintf(owner, size, "%.60s", line);
    }
    (void) fclose(file);
    return found;
}

void check_id_block(struct finding *finding)
{
    if (geteuid() != 0) {
        found_weak(finding, HEALTH_DEGRADED, "only root can map ids other than its own");
        suggest(finding, "sudo glovebox …, or let root run glovebox serve");
        return;
    }
    static const char *const files[] = { "/etc/subuid", "/etc/subgid" };
    char owner[64];
    for_each(path, files) {
        if (!range_overlaps(*path, owner, sizeof owner))
            continue;
        found_weak(finding, HEALTH_DEGRADED,
                   "%s gives ids of glovebox's block (%u to %u) to '%s' as well", *path,
                   (unsigned) HOST_ID_BASE, (unsigned) HOST_ID_LAST, owner);
        suggest(finding, "give '%s' another range in %s", owner, *path);
        return;
    }
    error err = { 0 };
    if (try_in_child(try_block, &err) == 0) {
        found_ok(finding, "%u to %u", (unsigned) HOST_ID_BASE, (unsigned) HOST_ID_LAST);
        return;
    }
    found_weak(finding, HEALTH_MISSING, "%s", err.text);
    suggest(finding, "this container maps too few ids: run it with --privileged and --userns=host");
}

/* A pipe in core_pattern starts a program of the host as root at each crash. RLIMIT_CORE 1 prevents
 * that (core(5)), so the check is whether this limit works. */
void check_core_pattern(struct finding *finding)
{
    char pattern[128];
    (void) read_text_at(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof pattern);
    pattern[strcspn(pattern, "\n")] = '\0';
    struct rlimit now;
    bool can_limit = getrlimit(RLIMIT_CORE, &now) == 0 && now.rlim_max >= 1;
    if (pattern[0] != '|')
        found_ok(finding, "%s", pattern);
    else if (can_limit)
        found_ok(finding, "'%s' is a pipe; RLIMIT_CORE 1 keeps sandboxes from it", pattern);
    else {
        found_weak(finding, HEALTH_DEGRADED, "crashes in sandboxes would start '%s' on the host",
                   pattern);
        suggest(finding,
                "sysctl kernel.core_pattern=core, or raise the hard limit: ulimit -Hc unlimited");
    }
}

static bool kernel_has_file_system(const char *name)
{
    FILE *file = fopen("/proc/filesystems", "re");
    char line[64];
    bool found = false;
    while (file && !found && fgets(line, sizeof line, file)) {
        char *last = strrchr(line, '\t');
        line[strcspn(line, "\n")] = '\0';
        found = last && strcmp(last + 1, name) == 0;
    }
    if (file)
        (void) fclose(file);
    return found;
}

/* Where images cannot be mounted, templates are private folders, so this is no failure. */
void check_file_systems(struct finding *finding)
{
    found_ok(finding, "erofs: %s, overlay: %s; templates are private folders",
             kernel_has_file_system("erofs") ? "yes" : "no (modprobe erofs)",
             kernel_has_file_system("overlay") ? "yes" : "no (modprobe overlay)");
}

void check_state(struct finding *finding)
{
    error err = { 0 };
    auto_text state = NULL;
    struct statvfs space;
    if (path_of_state(NULL, &state, &err) < 0 || make_folder(state, 0755, &err) < 0) {
        found_weak(finding, HEALTH_MISSING, "%s", err.text);
        suggest(finding, "choose a folder that you may write: export GLOVEBOX_STATE=/path");
        return;
    }
    if (access(state, W_OK | X_OK) < 0 || statvfs(state, &space) < 0) {
        (void) fail_os(&err, "use %s", state);
        found_weak(finding, HEALTH_MISSING, "%s", err.text);
        suggest(finding, "make it yours (chown), or choose another: export GLOVEBOX_STATE=/path");
        return;
    }
    if (geteuid() == 0 && check_reach(state, HOST_ID_BASE, &err) < 0) {
        found_weak(finding, HEALTH_MISSING, "%s", err.text);
        suggest(finding, "open that folder (chmod o+x), or choose another: export "
                         "GLOVEBOX_STATE=/path");
        return;
    }
    unsigned long long free_mib = (unsigned long long) space.f_bavail * space.f_frsize >> 20;
    if (free_mib < SPACE_FOR_TEMPLATES_MIB) {
        found_weak(finding, HEALTH_DEGRADED,
                   "%s has %llu MiB free; the template python takes up to %d", state, free_mib,
                   SPACE_FOR_TEMPLATES_MIB);
        suggest(finding, "make room there, or choose another place: export GLOVEBOX_STATE=/path");
        return;
    }
    found_ok(finding, "%s, %llu GiB free", state, free_mib >> 10);
}

/* Writes the names of complete templates, with commas, as many as fit. */
static void list_templates(const char *folder, char *names, size_t size)
{
    size_t length = 0;
    struct dirent *entry;
    DIR *templates = opendir(folder);
    names[0] = '\0';
    if (!templates)
        return;
    while ((entry = readdir(templates)) != NULL) { /* NOLINT(concurrency-mt-unsafe): one thread */
        char manifest[PATH_MAX];
        (void) snprintf(manifest, sizeof manifest, "%s/%s/manifest.json", folder, entry->d_name);
        if (entry->d_name[0] == '.' || access(manifest, R_OK) < 0 || length + 66 > size)
            continue;
        length += (size_t) snprintf(names + length, size - length, "%s%.63s", length ? ", " : "",
                                    entry->d_name);
    }
    (void) closedir(templates);
}

void check_templates(struct finding *finding)
{
    error err = { 0 };
    auto_text folder = NULL;
    char names[200] = "";
    if (path_of_templates(NULL, &folder, &err) == 0)
        list_templates(folder, names, sizeof names);
    if (names[0]) {
        found_ok(finding, "%s", names);
        return;
    }
    found_weak(finding, HEALTH_MISSING, "%s holds no template",
               folder ? folder : "the state folder");
    suggest(finding,
            "glovebox template build python (or minimal, which is a fraction of the size)");
}
