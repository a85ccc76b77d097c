/* cgroup_setup.c - reads /proc/self/mountinfo and /proc/self/cgroup and picks a folder for each
 * hierarchy.
 *
 * Root uses a folder below the root of the hierarchy as this mount namespace shows it, always the
 * same one, so that groups of a killed instance are found and removed. An ordinary user uses a
 * subtree that was delegated to it, if there is one. */
#include "supervisor/cgroup_setup.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static const char *const kinds[] = {
#define CGROUP(name, text) text,
#include "contract/cgroups.def"
};

/* The needed fields of a line of mountinfo; the texts point into the line. */
struct group_mount {
    char *root;   /* which part of the hierarchy is mounted */
    char *folder; /* where */
    char *type;
    char *options; /* of the file system: for v1 the controllers are among them */
};

/* /proc/self/mountinfo writes blanks and backslashes as three octal digits, proc(5). */
static void decode_octal(char *text)
{
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] && from[3]) {
            *to++ = (char) ((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 3;
        } else {
            *to++ = *from;
        }
    }
    *to = '\0';
}

static bool parse_mount(char *line, struct group_mount *ret_mount)
{
    char *rest = strstr(line, " - ");
    if (!rest)
        return false;
    *rest = '\0';
    rest += 3;
    char *save = NULL;
    (void) strtok_r(line, " ", &save);
    (void) strtok_r(NULL, " ", &save);
    (void) strtok_r(NULL, " ", &save);
    ret_mount->root = strtok_r(NULL, " ", &save);
    ret_mount->folder = strtok_r(NULL, " ", &save);
    ret_mount->type = strtok_r(rest, " \n", &save);
    (void) strtok_r(NULL, " \n", &save);
    ret_mount->options = strtok_r(NULL, " \n", &save);
    if (!ret_mount->root || !ret_mount->folder || !ret_mount->type || !ret_mount->options)
        return false;
    decode_octal(ret_mount->root);
    decode_octal(ret_mount->folder);
    return true;
}

static bool has_word(const char *list, const char *word, const char *separators)
{
    size_t length = strlen(word);
    while (*list) {
        size_t here = strcspn(list, separators);
        if (here == length && strncmp(list, word, length) == 0)
            return true;
        list += here + strspn(list + here, separators);
    }
    return false;
}

/* Reads a small file of a cgroup folder; "" if it is not there. */
static void read_group_file(const char *folder, const char *name, char *text, size_t size)
{
    text[0] = '\0';
    char path[PATH_MAX];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) < (int) sizeof path)
        (void) read_text_at(AT_FDCWD, path, text, size);
}

static bool can_write(const char *folder, const char *name)
{
    char path[PATH_MAX];
    return snprintf(path, sizeof path, "%s/%s", folder, name) < (int) sizeof path &&
           access(path, W_OK) == 0;
}

static void add_place(struct group_places *places, const char *kind, const char *folder)
{
    if (places->count == COUNT_OF(places->argument))
        return;
    for (size_t index = 0; index < places->count; index++) /* the same hierarchy, mounted twice */
        if (strncmp(places->argument[index], kind, strlen(kind)) == 0 &&
            places->argument[index][strlen(kind)] == '=')
            return;
    int length =
        snprintf(places->argument[places->count], GROUP_PLACE_TEXT, "%s=%s/glovebox", kind, folder);
    if (length < 0 || length >= GROUP_PLACE_TEXT)
        return;
    if (places->count > 0 &&
        strcmp(kind, "freezer") == 0) { /* first in the sweep: frozen processes keep all groups */
        char first[GROUP_PLACE_TEXT];
        memcpy(first, places->argument[places->count], sizeof first);
        memcpy(places->argument[places->count], places->argument[0], sizeof first);
        memcpy(places->argument[0], first, sizeof first);
    }
    places->count++;
}

/* With cgroup v2, only a folder without processes of its own can enable controllers for its
 * children. Moves its processes into the leaf `name`; `only` limits that to one process. Returns
 * whether the folder has no process now. */
static bool clear_folder(const char *folder, const char *name, pid_t only)
{
    char leaf[PATH_MAX - 32];
    if (snprintf(leaf, sizeof leaf, "%s/%s", folder, name) >= (int) sizeof leaf)
        return false;
    for (int pass = 0; pass < 8; pass++) { /* processes there may fork meanwhile */
        char pids[4096];
        read_group_file(folder, "cgroup.procs", pids, sizeof pids);
        if (!pids[0])
            return true;
        if (mkdir(leaf, 0755) < 0 && errno != EEXIST)
            return false;
        char path[PATH_MAX];
        (void) snprintf(path, sizeof path, "%s/cgroup.procs", leaf);
        auto_fd procs = open(path, O_WRONLY | O_CLOEXEC);
        char *save = NULL;
        for (char *pid = strtok_r(pids, "\n", &save); pid; pid = strtok_r(NULL, "\n", &save)) {
            if (only != 0 && strtol(pid, NULL, 10) != only)
                return false;
            if (procs < 0 || (write(procs, pid, strlen(pid)) < 0 && errno != ESRCH))
                return false;
        }
    }
    return false;
}

/* Does the folder belong to this user, and has it no processes? */
static bool is_delegated(const char *folder)
{
    char pids[64];
    read_group_file(folder, "cgroup.procs", pids, sizeof pids);
    return !pids[0] && access(folder, W_OK | X_OK) == 0 && can_write(folder, "cgroup.procs") &&
           can_write(folder, "cgroup.subtree_control");
}

/* The folder of this process in the v2 hierarchy: the line "0::/path" of /proc/self/cgroup. */
static bool own_group(const struct group_mount *mount, char *folder, size_t size)
{
    char text[4096];
    read_group_file("/proc/self", "cgroup", text, sizeof text);
    char *save = NULL;
    for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        if (strncmp(line, "0::/", 4) != 0)
            continue;
        const char *path = line + 3;
        size_t prefix = strcmp(mount->root, "/") == 0 ? 0 : strlen(mount->root);
        if (strncmp(path, mount->root, prefix) != 0)
            return false;
        int length = snprintf(folder, size, "%s%s", mount->folder, path + prefix);
        while (length > 1 && (size_t) length < size && folder[length - 1] == '/')
            folder[--length] = '\0';
        return (size_t) length < size;
    }
    return false;
}

/* The nearest folder above this process that was delegated; else its own, if it is alone in it. */
static bool delegated_folder(const struct group_mount *mount, char *folder, size_t size)
{
    char own[PATH_MAX - 64];
    if (!own_group(mount, own, sizeof own))
        return false;
    (void) snprintf(folder, size, "%s", own);
    for (char *slash = strrchr(folder, '/'); slash; slash = strrchr(folder, '/')) {
        *slash = '\0';
        if (strlen(folder) < strlen(mount->folder))
            break;
        if (is_delegated(folder))
            return true;
    }
    (void) snprintf(folder, size, "%s", own);
    return access(own, W_OK | X_OK) == 0 && can_write(own, "cgroup.procs") &&
           can_write(own, "cgroup.subtree_control") && clear_folder(own, "launcher", getpid());
}

static void find_unified(const struct group_mount *mount, struct group_places *places)
{
    char controllers[512];
    read_group_file(mount->folder, "cgroup.controllers", controllers, sizeof controllers);
    if (!has_word(controllers, "memory", " \n") && !has_word(controllers, "pids", " \n"))
        return; /* a hybrid layout: the controllers are in v1 */
    if (geteuid() != 0) {
        char folder[PATH_MAX];
        if (delegated_folder(mount, folder, sizeof folder))
            add_place(places, "unified", folder);
        return;
    }
    if (!can_write(mount->folder, "cgroup.procs"))
        return;
    /* Only the real root has no cgroup.type, and may have processes. The root of a container's
     * cgroup namespace has one. */
    char type[64];
    read_group_file(mount->folder, "cgroup.type", type, sizeof type);
    if (!type[0] || clear_folder(mount->folder, "init", 0))
        add_place(places, "unified", mount->folder);
}

static void find_v1(const struct group_mount *mount, struct group_places *places)
{
    if (access(mount->folder, W_OK | X_OK) < 0)
        return;
    for_each(kind, kinds) /* "unified" is no controller of v1 */
        if (has_word(mount->options, *kind, ","))
            add_place(places, *kind, mount->folder);
}

/* The first process that changes its group after a pause waits for an RCU grace period, 8 ms and
 * more; those that follow soon do not (percpu_rw_semaphore, kernel/rcu/sync.c). A child without
 * other work waits for that, while the programs start. */
pid_t groups_wake(const struct group_places *places)
{
    if (places->count == 0)
        return 0;
    char path[GROUP_PLACE_TEXT + 32];
    const char *place = strchr(places->argument[0], '=') + 1;
    const char *slash = strrchr(place, '/');
    if (!slash)
        return 0;
    (void) snprintf(path, sizeof path, "%.*s/cgroup.procs", (int) (slash - place), place);
    pid_t child = fork();
    if (child != 0)
        return child > 0 ? child : 0;
    int procs = open(path, O_WRONLY | O_CLOEXEC);
    (void) !write(procs, "0", 1);
    _exit(EXIT_SUCCESS);
}

void groups_find(struct group_places *ret_places)
{
    ret_places->count = 0;
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts)
        return;
    auto_text line = NULL;
    size_t room = 0;
    while (getline(&line, &room, mounts) > 0) {
        struct group_mount mount;
        if (!strstr(line, " - cgroup") || !parse_mount(line, &mount))
            continue;
        if (strcmp(mount.type, "cgroup2") == 0)
            find_unified(&mount, ret_places);
        else if (strcmp(mount.type, "cgroup") == 0)
            find_v1(&mount, ret_places);
    }
    (void) fclose(mounts);
}
