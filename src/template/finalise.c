/* finalise.c - removes files from a new root, adds others, and sets owners.
 *
 * Before any program runs in it, and only by descriptors: links of packages are not followed. */
#include "template/build.h"

#include "base/table.h"
#include "node_start.h"
#include "template/recipe.h"
#include "template/tree.h"
#include "template/walls.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* Removed from every template: patterns (fnmatch(3)), in which '*' does not match '/'. */
/* clang-format off */
static const char *const left_out[] = {
    /* what each sandbox gets itself */
    "boot", "dev", "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp",
    /* names, keys and secrets of a machine */
    "etc/*shadow*", "etc/passwd*", "etc/group*", "etc/subuid*", "etc/subgid*", "etc/machine-id",
    "etc/hostname", "etc/resolv.conf", "etc/fstab", "etc/mtab", "etc/ssh", "etc/ssl/private",
    "etc/security", "etc/pam*", "etc/cron*", "etc/.pwd.lock", "etc/krb5*", "var/lib/dbus",
    /* the packaging system: `glovebox libs` lists what is inside */
    "etc/apt", "etc/dpkg", "etc/kernel", "etc/systemd", "etc/init.d", "etc/rc?.d", "etc/logrotate.d",
    "var/backups", "var/cache", "var/lib/apt", "var/lib/dpkg", "var/lib/pam", "var/lib/systemd",
    "var/log", "var/mail", "var/spool", "var/tmp", "usr/lib/apt",
    "usr/lib/systemd", "usr/share/bug",
    /* not needed */
    "usr/share/doc", "usr/share/doc-base", "usr/share/info", "usr/share/lintian", "usr/share/locale",
    "usr/share/man", "usr/share/menu", "usr/share/pixmaps", "usr/share/zsh", "usr/share/bash-completion",
    "usr/share/applications",
};
/* clang-format on */

/* Files with names for the sandbox: one user, one host. */
static const struct {
    const char *path, *text;
} new_files[] = {
    { "etc/passwd", "user:x:1000:1000::/home/user:/bin/bash\n" },
    { "etc/group", "user:x:1000:\n" },
    { "etc/hosts", "127.0.0.1 localhost\n::1 localhost\n" },
    { "etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\nservices: files\n"
                           "protocols: files\nnetworks: files\nethers: files\nrpc: files\n" },
    { "etc/resolv.conf", "" },
};

static const char *const new_directories[] = {
    /* clang-format off */
    "dev", "etc", "home", "home/user", "proc", "run", "tmp", "workspace", "usr", "usr/lib", "usr/lib/glovebox",
    "usr/share", "usr/share/glovebox", "usr/share/glovebox/skel", "var", "var/cache", "var/log", "var/tmp"
    /* clang-format on */
};

/* No file is newer than this (2025-01-01), or than $SOURCE_DATE_EPOCH. */
static time_t newest_time(void)
{
    const char *text = getenv("SOURCE_DATE_EPOCH"); /* NOLINT(concurrency-mt-unsafe): one thread */
    char *end = NULL;
    long long value = text ? strtoll(text, &end, 10) : 0;
    return text && *text && *end == '\0' && value > 0 ? (time_t) value : 1735689600;
}

static bool is_left_out(const struct build *build, const char *path)
{
    for_each(pattern, left_out)
        if (fnmatch(*pattern, path, FNM_PATHNAME) == 0)
            return true;
    struct json_object *patterns = build_key(build, "leave_out");
    for (size_t index = 0; index < json_object_array_length(patterns); index++)
        if (fnmatch(json_object_get_string(json_object_array_get_idx(patterns, index)), path,
                    FNM_PATHNAME) == 0)
            return true;
    return false;
}

/* Sets modes: every user may read, the owner may write, nothing is set-uid. Only the executable bit
 * is kept. */
static int make_harmless(const struct tree_entry *entry, error *err)
{
    mode_t mode = entry->status.st_mode;
    mode_t plain = S_ISDIR(mode) || (mode & 0111) ? 0755 : 0644;
    if (fchownat(entry->directory, entry->name, geteuid(), getegid(), AT_SYMLINK_NOFOLLOW) < 0)
        return fail_os(err, "own '%.150s'", entry->path);
    if (!S_ISLNK(mode) && (mode & 07777) != plain &&
        fchmodat(entry->directory, entry->name, plain, 0) < 0)
        return fail_os(err, "set the mode of '%.150s'", entry->path);
    return 0;
}

static int strip_entry(void *context, const struct tree_entry *entry, error *err)
{
    mode_t mode = entry->status.st_mode;
    if (entry->leaving)
        return TREE_GO_ON;
    bool stays = S_ISDIR(mode) || S_ISREG(mode) || S_ISLNK(mode);
    if (!stays || is_left_out(context, entry->path) || strcmp(entry->name, "__pycache__") == 0 ||
        strncmp(entry->name, ".wh.", 4) == 0)
        return tree_remove(entry->directory, entry->name, err) < 0 ? -1 : TREE_SKIP;
    return make_harmless(entry, err) < 0 ? -1 : TREE_GO_ON;
}

int strip_tree(struct build *build, error *err)
{
    if (fchmod(build->root, 0755) < 0 || fchown(build->root, geteuid(), getegid()) < 0)
        return fail_os(err, "own the new root");
    return tree_walk(build->root, strip_entry, build, err);
}

/* Writes the file that Node.js loads first (RECIPE_NODE_START). */
static int furnish_node(struct build *build, error *err)
{
    struct json_object *options = json_object_object_get(build_key(build, "env"), "NODE_OPTIONS");
    if (!options || !strstr(json_object_get_string(options), "/" RECIPE_NODE_START))
        return 0;
    return tree_make_directory(build->root, "usr/local/lib/glovebox", err) < 0
               ? -1
               : tree_write_file(build->root, RECIPE_NODE_START, node_start_code,
                                 strlen(node_start_code), err);
}

int furnish_tree(struct build *build, error *err)
{
    for_each(path, new_directories)
        if (tree_make_directory(build->root, *path, err) < 0)
            return -1;
    for_each(file, new_files)
        if (tree_write_file(build->root, file->path, file->text, strlen(file->text), err) < 0)
            return -1;
    return furnish_node(build, err);
}

/* Code of packages runs without capabilities, as a user that owns only this tree. */
int hand_over_tree(struct build *build, error *err)
{
    uid_t owner = walls_owner();
    return owner == geteuid() ? 0 : tree_give(build->root, owner, err);
}

struct settling {
    struct build *build;
    time_t newest;
};

static int settle_entry(void *context, const struct tree_entry *entry, error *err)
{
    struct settling *settling = context;
    mode_t mode = entry->status.st_mode;
    if (!S_ISDIR(mode) && !S_ISREG(mode) && !S_ISLNK(mode))
        return fail(err, ERR_INTERNAL, "'%.150s' is no file, directory or link", entry->path);
    if (make_harmless(entry, err) < 0)
        return -1;
    if (S_ISDIR(mode) && !entry->leaving)
        return TREE_GO_ON;
    struct timespec times[2] = { { .tv_sec = settling->newest }, entry->status.st_mtim };
    if (times[1].tv_sec >= settling->newest)
        times[1] = times[0];
    if (utimensat(entry->directory, entry->name, times, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_os(err, "set the time of '%.150s'", entry->path);
    settling->build->files++;
    if (S_ISREG(mode))
        settling->build->bytes += (uint64_t) entry->status.st_size;
    return TREE_GO_ON;
}

int settle_tree(struct build *build, error *err)
{
    struct settling settling = { .build = build, .newest = newest_time() };
    struct timespec times[2] = { { .tv_sec = settling.newest }, { .tv_sec = settling.newest } };
    if (fchown(build->root, geteuid(), getegid()) < 0 || fchmod(build->root, 0755) < 0)
        return fail_os(err, "own the new root");
    if (tree_walk(build->root, settle_entry, &settling, err) < 0)
        return -1;
    return futimens(build->root, times) < 0 ? fail_os(err, "set the time of the root") : 0;
}
