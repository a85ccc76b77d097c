/* entries.c - STAT, LIST, MAKE, MOVE and REMOVE of a session. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/clock.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { DEPTH_MAX = 64, EMPTY_MS = 10000 };

/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
void send_entry(const struct sandbox *sandbox, uint32_t id, int folder, const char *name,
                const char *path, uint32_t depth)
{
    static char texts[2 * AGENT_PATH_MAX];
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* gone since it was listed */
    struct agent_entry entry = {
        .size = (uint64_t) status.st_size,
        .mtime_ns = nanoseconds_of(&status.st_mtim),
        .mode = status.st_mode,
        .depth = depth,
        .path_size = (uint32_t) strlen(path),
    };
    ssize_t link = 0;
    memcpy(texts, path, entry.path_size);
    if (S_ISLNK(status.st_mode)) {
        link = readlinkat(folder, name, texts + entry.path_size, AGENT_PATH_MAX);
        entry.target_mode = mode_of_target(folder, name);
    }
    send_frame(sandbox, AGENT_ENTRY, 0, id, &entry, sizeof entry, texts,
               entry.path_size + (size_t) (link > 0 ? link : 0));
}

int stat_path(struct sandbox *sandbox, const struct frame *in, error *err)
{
    const char *path = (const char *) in->payload;
    const char *name;
    struct stat status;
    if (*path == '\0' || strcmp(path, "/") == 0) { /* /workspace and "/" have no last name */
        auto_fd whole = open_path(sandbox, path, O_PATH | O_DIRECTORY, err);
        if (whole < 0)
            return -1;
        send_entry(sandbox, in->head.id, whole, ".", path, 0);
        send_done(sandbox, in->head.id, NULL);
        return 0;
    }
    auto_fd folder = open_place(sandbox, path, false, &name, err);
    if (folder < 0)
        return -1;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_os(err, "look at '%.100s'", path);
    send_entry(sandbox, in->head.id, folder, name, path, 0);
    send_done(sandbox, in->head.id, NULL);
    return 0;
}

int make_folder(struct sandbox *sandbox, const char *path, error *err)
{
    const char *name;
    auto_fd folder = open_place(sandbox, path, true, &name, err);
    if (folder < 0)
        return -1;
    return mkdirat(folder, name, 0755) < 0 ? fail_os(err, "make folder '%.100s'", path) : 0;
}

int move_path(struct sandbox *sandbox, const char *from, const char *to, error *err)
{
    const char *from_name;
    const char *to_name;
    auto_fd from_folder = open_place(sandbox, from, false, &from_name, err);
    if (from_folder < 0)
        return -1;
    auto_fd to_folder = open_place(sandbox, to, true, &to_name, err);
    if (to_folder < 0)
        return -1;
    if (renameat(from_folder, from_name, to_folder, to_name) < 0)
        return fail_os(err, "move '%.80s' to '%.80s'", from, to);
    return 0;
}

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Moves a folder that is deeper than the stack of open folders to the top, to remove it there. */
static int hoist(int folder, const char *name, int top)
{
    static unsigned number;
    char hoisted[32];
    for (int tried = 0; tried < 1000; tried++) {
        (void) snprintf(hoisted, sizeof hoisted, ".glovebox-%u.deep", number++);
        if (syscall(SYS_renameat2, folder, name, top, hoisted, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
    }
    return -1;
}

/* Removes one entry. Returns 1 if it is a folder that is not empty, *ret_inner. */
static int remove_entry(const int *folders, unsigned depth, const char *name, int *ret_inner)
{
    int folder = folders[depth - 1];
    if (unlinkat(folder, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return -1;
    if (unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY)
        return -1;
    if (depth == DEPTH_MAX)
        return hoist(folder, name, folders[0]);
    *ret_inner = open_inner(folder, name, O_RDONLY);
    return *ret_inner < 0 ? -1 : 1;
}

/* Removes what is in the last folder: all of it (0), or up to a folder that is not empty (1). It
 * gives up at `end`, since a program may fill the folder at the same time. */
static int remove_entries(const int *folders, unsigned depth, deadline end, int *ret_inner,
                          error *err)
{
    _Alignas(struct listed) char entries[2048];
    for (unsigned removed = 1; removed > 0;) { /* what was removed hides entries from a listing */
        removed = 0;
        long got = lseek(folders[depth - 1], 0, SEEK_SET) < 0
                       ? -1
                       : syscall(SYS_getdents64, folders[depth - 1], entries, sizeof entries);
        if (got < 0)
            return fail_os(err, "list a folder");
        if (deadline_has_passed(end))
            return fail(err, ERR_CONFLICT, "a program fills it as fast as it is emptied");
        for_each_listed(entry, entries, got) {
            if (is_dots(entry->name))
                continue;
            removed++;
            int done = remove_entry(folders, depth, entry->name, ret_inner);
            if (done != 0)
                return done < 0 ? fail_os(err, "remove '%.100s'", entry->name) : 1;
        }
    }
    return 0;
}

int empty_folder(int folder, error *err)
{
    int folders[DEPTH_MAX + 1] = { folder };
    deadline end = deadline_in(EMPTY_MS);
    unsigned depth = 1;
    int done = 0;
    while (depth > 0 && done >= 0) {
        done = remove_entries(folders, depth, end, &folders[depth], err);
        if (done == 1)
            depth++;
        else if (done == 0 && --depth > 0)
            (void) close(folders[depth]);
    }
    while (depth > 1)
        (void) close(folders[--depth]);
    return done;
}

int remove_path(struct sandbox *sandbox, const char *path, error *err)
{
    const char *name;
    auto_fd parent = open_place(sandbox, path, false, &name, err);
    if (parent < 0)
        return -1;
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return fail_os(err, "remove '%.100s'", path);
    auto_fd folder = open_inner(parent, name, O_RDONLY);
    if (folder < 0)
        return fail_os(err, "open '%.100s'", path);
    if (empty_folder(folder, err) < 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0)
        return fail_os(err, "remove '%.100s'", path);
    return 0;
}

/* One folder of a listing; depth first, names in the order of the file system. */
struct listing {
    struct sandbox *sandbox;
    uint32_t id, left, depth_max;
    bool is_cut;
    char path[AGENT_PATH_MAX + 1];
};

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static void list_into(struct listing *listing, int folder, size_t length, uint32_t depth)
{
    _Alignas(struct listed) char entries[8192];
    long got;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
        for_each_listed(entry, entries, got) {
            size_t name = strlen(entry->name);
            if (is_dots(entry->name) || length + name + 1 > AGENT_PATH_MAX)
                continue;
            if (listing->left == 0) {
                listing->is_cut = true;
                return;
            }
            listing->left--;
            memcpy(listing->path + length, entry->name, name + 1);
            send_entry(listing->sandbox, listing->id, folder, entry->name, listing->path, depth);
            if (depth >= listing->depth_max || (entry->type != DT_DIR && entry->type != DT_UNKNOWN))
                continue;
            auto_fd inner = open_inner(folder, entry->name, O_RDONLY);
            if (inner < 0)
                continue; /* init may not read it: it is listed, its contents are not */
            listing->path[length + name] = '/';
            list_into(listing, inner, length + name + 1, depth + 1);
        }
    }
}

int list_folder(struct sandbox *sandbox, uint32_t id, const struct agent_list *order,
                const char *path, error *err)
{
    static struct listing listing;
    auto_fd folder = open_path(sandbox, path, O_RDONLY | O_DIRECTORY, err);
    if (folder < 0)
        return -1;
    uint32_t depth = order->depth == 0 ? 1 : order->depth;
    listing = (struct listing){ .sandbox = sandbox, .id = id, .left = order->max };
    listing.depth_max = depth < DEPTH_MAX ? depth : DEPTH_MAX;
    list_into(&listing, folder, 0, 1);
    errno = E2BIG;
    return listing.is_cut ? fail_os(err, "list '%.100s'", path) : 0;
}
