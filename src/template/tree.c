/* tree.c - a walk is a stack of open directories, each with its remaining names, sorted. */
#include "template/tree.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/write_whole.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEEPEST = 200, FILE_MAX = 256 * 1024 * 1024 };

struct level {
    int fd;
    struct dirent **entries;
    int count, next;
    size_t path_length; /* of the path of this directory, with the '/' that follows it */
};

struct walk {
    struct level levels[DEEPEST];
    size_t depth;
    dev_t device;
    char path[PATH_MAX];
};

static int by_bytes(const struct dirent **left, const struct dirent **right)
{
    return strcmp((*left)->d_name, (*right)->d_name);
}

static int is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void level_done(struct level *level)
{
    for (int index = 0; index < level->count; index++)
        free(level->entries[index]);
    free(level->entries);
    (void) close(level->fd);
}

/* Takes: `fd`. */
static int enter(struct walk *walk, int fd, size_t path_length, error *err)
{
    if (walk->depth == DEEPEST) {
        (void) close(fd);
        return fail(err, ERR_TOO_LARGE, "'%.100s…' is nested deeper than %d", walk->path, DEEPEST);
    }
    struct level *level = &walk->levels[walk->depth++];
    *level = (struct level){ .fd = fd, .path_length = path_length };
    level->count = scandirat(fd, ".", &level->entries, is_entry, by_bytes);
    if (level->count < 0) {
        level->count = 0;
        return fail_os(err, "read directory '%.150s'", walk->path);
    }
    return 0;
}

static int enter_entry(struct walk *walk, const struct tree_entry *entry, error *err)
{
    int fd = openat(entry->directory, entry->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_os(err, "open directory '%.150s'", walk->path);
    size_t length = strlen(walk->path);
    if (length + 2 > sizeof(walk->path)) {
        (void) close(fd);
        return fail(err, ERR_TOO_LARGE, "'%.100s…' is too long", walk->path);
    }
    walk->path[length] = '/';
    walk->path[length + 1] = '\0';
    return enter(walk, fd, length + 1, err);
}

/* Is it a mount point? Another device number does not show that: with overlayfs, files of each
 * layer have another one. */
static bool is_mount(int directory, const char *name, bool otherwise)
{
    struct statx status;
    int flags = AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT;
    if (statx(directory, name, flags, 0, &status) < 0 ||
        !(status.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return otherwise;
    return status.stx_attributes & STATX_ATTR_MOUNT_ROOT;
}

static int look_at(struct walk *walk, const struct level *level, const char *name,
                   struct tree_entry *ret_entry, error *err)
{
    size_t length = strlen(name);
    if (level->path_length + length >= sizeof(walk->path))
        return fail(err, ERR_TOO_LARGE, "'%.100s…' is too long", walk->path);
    memcpy(walk->path + level->path_length, name, length + 1);
    *ret_entry = (struct tree_entry){ .directory = level->fd, .name = name, .path = walk->path };
    if (fstatat(level->fd, name, &ret_entry->status, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_os(err, "look at '%.150s'", walk->path);
    if (is_mount(level->fd, name, ret_entry->status.st_dev != walk->device))
        return fail(err, ERR_CONFLICT, "something is mounted at '%.150s'; unmount it", walk->path);
    return 0;
}

/* Leaves the innermost directory, and calls the visitor for it again. */
static int leave(struct walk *walk, tree_visit *visit, void *context, error *err)
{
    level_done(&walk->levels[--walk->depth]);
    if (walk->depth == 0)
        return 0;
    const struct level *level = &walk->levels[walk->depth - 1];
    struct tree_entry entry = { .directory = -1, .name = "" };
    if (look_at(walk, level, level->entries[level->next - 1]->d_name, &entry, err) < 0)
        return -1;
    entry.leaving = true;
    return visit(context, &entry, err) < 0 ? -1 : 0;
}

static int walk_on(struct walk *walk, tree_visit *visit, void *context, error *err)
{
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (level->next == level->count) {
            if (leave(walk, visit, context, err) < 0)
                return -1;
            continue;
        }
        struct tree_entry entry = { .directory = -1, .name = "" };
        if (look_at(walk, level, level->entries[level->next++]->d_name, &entry, err) < 0)
            return -1;
        int answer = visit(context, &entry, err);
        if (answer < 0)
            return -1;
        if (S_ISDIR(entry.status.st_mode) && answer == TREE_GO_ON &&
            enter_entry(walk, &entry, err) < 0)
            return -1;
    }
    return 0;
}

int tree_walk(int root, tree_visit *visit, void *context, error *err)
{
    struct stat status;
    int own = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* with its own offset */
    if (own < 0 || fstat(own, &status) < 0) {
        (void) fail_os(err, "open the tree");
        close_fd(&own);
        return -1;
    }
    struct walk *walk = calloc(1, sizeof(*walk));
    if (!walk) {
        (void) close(own);
        return fail_os(err, "walk");
    }
    walk->device = status.st_dev;
    int result = enter(walk, own, 0, err);
    if (result == 0)
        result = walk_on(walk, visit, context, err);
    while (walk->depth > 0)
        level_done(&walk->levels[--walk->depth]);
    free(walk);
    return result;
}

/* In a block of ids, users and groups have the same numbers; the caller's group may not. */
static gid_t group_of(uid_t owner)
{
    return owner == geteuid() ? getegid() : owner;
}

static int give_entry(void *context, const struct tree_entry *entry, error *err)
{
    const uid_t *owner = context;
    if (!entry->leaving &&
        fchownat(entry->directory, entry->name, *owner, group_of(*owner), AT_SYMLINK_NOFOLLOW) < 0)
        return fail_os(err, "give '%.150s' to %u", entry->path, *owner);
    return TREE_GO_ON;
}

int tree_give(int root, uid_t owner, error *err)
{
    if (fchown(root, owner, group_of(owner)) < 0)
        return fail_os(err, "give a folder to %u", owner);
    return tree_walk(root, give_entry, &owner, err);
}

struct removal {
    int top;
    unsigned hoisted; /* folders moved to the top, for the next walk */
};

/* Code of a build may have nested folders deeper than a walk can go. */
static bool is_deep(const char *path)
{
    size_t levels = 0;
    for (const char *at = strchr(path, '/'); at; at = strchr(at + 1, '/'))
        levels++;
    return levels > DEEPEST / 2 || strlen(path) > PATH_MAX / 2;
}

static int hoist(struct removal *removal, const struct tree_entry *entry, error *err)
{
    char name[32];
    int done;
    do {
        (void) snprintf(name, sizeof name, ".deep-%u", removal->hoisted++);
        done = renameat2(entry->directory, entry->name, removal->top, name, RENAME_NOREPLACE);
    } while (done < 0 && errno == EEXIST);
    return done < 0 ? fail_os(err, "move '%.150s'", entry->path) : TREE_SKIP;
}

static int remove_entry(void *context, const struct tree_entry *entry, error *err)
{
    bool directory = S_ISDIR(entry->status.st_mode);
    if (directory && !entry->leaving) { /* make it writable, so that it can be emptied */
        if ((entry->status.st_mode & 0700) != 0700 &&
            fchmodat(entry->directory, entry->name, 0700, 0) < 0)
            return fail_os(err, "open up '%.150s'", entry->path);
        return is_deep(entry->path) ? hoist(context, entry, err) : TREE_GO_ON;
    }
    if (unlinkat(entry->directory, entry->name, directory ? AT_REMOVEDIR : 0) < 0)
        return fail_os(err, "remove '%.150s'", entry->path);
    return TREE_GO_ON;
}

int tree_remove(int directory, const char *name, error *err)
{
    if (unlinkat(directory, name, 0) == 0 || errno == ENOENT)
        return 0;
    auto_fd fd = openat(directory, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_os(err, "open '%s'", name);
    if (fchmod(fd, 0700) < 0)
        return fail_os(err, "open up '%s'", name);
    struct removal removal = { .top = fd };
    unsigned before;
    do {
        before = removal.hoisted;
        if (tree_walk(fd, remove_entry, &removal, err) < 0)
            return -1;
    } while (removal.hoisted > before);
    if (unlinkat(directory, name, AT_REMOVEDIR) < 0)
        return fail_os(err, "remove '%s'", name);
    return 0;
}

int tree_open(int root, const char *path, int flags)
{
    struct open_how how = {
        .flags = (unsigned) flags | O_CLOEXEC,
        .mode = flags & O_CREAT ? 0644 : 0,
        .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS,
    };
    return (int) syscall(SYS_openat2, root, path, &how, sizeof(how));
}

int tree_make_directory(int root, const char *path, error *err)
{
    char part[PATH_MAX];
    size_t length = strlen(path);
    if (length >= sizeof(part))
        return fail(err, ERR_TOO_LARGE, "'%.100s…' is too long", path);
    for (size_t end = 1; end <= length; end++) {
        if (path[end] != '/' && path[end] != '\0')
            continue;
        memcpy(part, path, end);
        part[end] = '\0';
        /* The directory above has just been opened without following links. */
        char *slash = strrchr(part, '/');
        if (slash)
            *slash = '\0';
        auto_fd above = tree_open(root, slash ? part : ".", O_RDONLY | O_DIRECTORY);
        if (above < 0)
            return fail_os(err, "open '%.150s'", slash ? part : ".");
        const char *name = slash ? slash + 1 : part;
        if (mkdirat(above, name, 0755) < 0 && errno != EEXIST)
            return fail_os(err, "make directory '%.150s'", path);
    }
    return 0;
}

int tree_write_file(int root, const char *path, const void *bytes, size_t size, error *err)
{
    char above[PATH_MAX] = ".";
    const char *slash = strrchr(path, '/');
    if (slash && (size_t) (slash - path) < sizeof(above)) {
        memcpy(above, path, (size_t) (slash - path));
        above[slash - path] = '\0';
    }
    auto_fd directory = tree_open(root, above, O_RDONLY | O_DIRECTORY);
    if (directory < 0)
        return fail_os(err, "open '%.150s'", above);
    const char *name = slash ? slash + 1 : path;
    if (unlinkat(directory, name, 0) < 0 && errno != ENOENT)
        return fail_os(err, "replace '%.150s'", path);
    auto_fd fd =
        openat(directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0 || fchmod(fd, 0644) < 0 || write_whole(fd, bytes, size) < 0)
        return fail_os(err, "write '%.150s'", path);
    return 0;
}

int tree_replace_file(int root, const char *path, const void *bytes, size_t size, error *err)
{
    char fresh[PATH_MAX];
    (void) snprintf(fresh, sizeof(fresh), "%s.new", path);
    if (tree_write_file(root, fresh, bytes, size, err) < 0)
        return -1;
    return renameat(root, fresh, root, path) < 0 ? fail_os(err, "replace '%.150s'", path) : 0;
}

int tree_read_file(int root, const char *path, char **ret_text, size_t *ret_size, error *err)
{
    auto_fd fd = tree_open(root, path, O_RDONLY);
    struct stat status;
    if (fd < 0 || fstat(fd, &status) < 0)
        return fail_os(err, "read '%.150s'", path);
    if (!S_ISREG(status.st_mode) || status.st_size > FILE_MAX)
        return fail(err, ERR_TOO_LARGE, "'%.150s' is no file that can be read here", path);
    auto_text text = malloc((size_t) status.st_size + 1);
    ssize_t got = text ? read_at(fd, text, (size_t) status.st_size, 0) : -1;
    if (got < 0)
        return fail_os(err, "read '%.150s'", path);
    text[got] = '\0';
    *ret_size = (size_t) got;
    *ret_text = take_text(&text);
    return 0;
}
