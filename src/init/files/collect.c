/* collect.c - finds the artifacts of a run: regular files under /workspace that are new, or differ
 * from the inputs that were sealed. Every program has ended by then, so nothing changes meanwhile.
 *
 * The rules: links, FIFOs, sockets and devices are reported and left out; a name must be UTF-8
 * without control characters; a file counts with its full size, so that a huge sparse file is
 * reported and not read. */
#include "init/init.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { INPUTS_MAX = 4096, DEPTH_MAX = 64, SKIPPED_MAX = 64 };

/* An input as it was sealed. A change in place shows in mtime or, if the program has set that back,
 * in ctime, which it cannot set. */
struct input {
    ino_t inode;
    off_t size;
    struct timespec changed;  /* ctime */
    struct timespec modified; /* mtime */
};

static struct input inputs[INPUTS_MAX];
static unsigned input_count;

struct walk {
    struct sandbox *sandbox;
    uint32_t id;
    bool sealing;
    uint64_t bytes_left;
    uint32_t files_left;
    uint64_t over_count;
    uint32_t skipped; /* reported so far; the rest is only counted in gloveboxd's totals */
    char path[AGENT_PATH_MAX + 1];
};

static bool same_time(const struct timespec *one, const struct timespec *other)
{
    return one->tv_sec == other->tv_sec && one->tv_nsec == other->tv_nsec;
}

static bool is_unchanged_input(const struct stat *status)
{
    for (unsigned i = 0; i < input_count; i++)
        if (inputs[i].inode == status->st_ino)
            return inputs[i].size == status->st_size &&
                   same_time(&inputs[i].changed, &status->st_ctim) &&
                   same_time(&inputs[i].modified, &status->st_mtim);
    return false;
}

/* One UTF-8 sequence, RFC 3629: shortest form, no surrogates, nothing above U+10FFFF. Gives its
 * length, 0 if it is none. */
static size_t utf8_length(const unsigned char *at)
{
    static const struct {
        unsigned char first_min, first_max, second_min, second_max;
        size_t length;
    } forms[] = {
        { 0xC2, 0xDF, 0x80, 0xBF, 2 }, { 0xE0, 0xE0, 0xA0, 0xBF, 3 }, { 0xE1, 0xEC, 0x80, 0xBF, 3 },
        { 0xED, 0xED, 0x80, 0x9F, 3 }, { 0xEE, 0xEF, 0x80, 0xBF, 3 }, { 0xF0, 0xF0, 0x90, 0xBF, 4 },
        { 0xF1, 0xF3, 0x80, 0xBF, 4 }, { 0xF4, 0xF4, 0x80, 0x8F, 4 },
    };
    if (at[0] < 0x80)
        return 1;
    for_each(form, forms) {
        if (at[0] < form->first_min || at[0] > form->first_max)
            continue;
        if (at[1] < form->second_min || at[1] > form->second_max)
            return 0;
        for (size_t i = 2; i < form->length; i++)
            if ((at[i] & 0xC0) != 0x80)
                return 0;
        return form->length;
    }
    return 0;
}

static bool is_plain_name(const char *name)
{
    for (const unsigned char *at = (const unsigned char *) name; *at;) {
        size_t length = utf8_length(at);
        bool is_control = *at < 0x20 || *at == 0x7F || (at[0] == 0xC2 && at[1] < 0xA0);
        if (length == 0 || is_control)
            return false;
        at += length;
    }
    return true;
}

static void skip(struct walk *walk, enum agent_skip reason, int os, uint64_t size, const char *path)
{
    struct agent_skipped skipped = { .reason = (uint32_t) reason, .os = os, .size = size };
    if (walk->skipped++ >= SKIPPED_MAX && reason != AGENT_SKIP_COUNT)
        return;
    send_frame(walk->sandbox, AGENT_SKIPPED, 0, walk->id, &skipped, sizeof skipped, path,
               strlen(path));
}

static int take_file(struct walk *walk, int folder, const char *name, const struct stat *status,
                     error *err)
{
    uint64_t size = (uint64_t) status->st_size;
    if (!is_plain_name(walk->path)) {
        skip(walk, AGENT_SKIP_NAME, 0, size, walk->path);
        return 0;
    }
    if (walk->files_left == 0) {
        walk->over_count++;
        return 0;
    }
    if (size > walk->bytes_left) {
        skip(walk, AGENT_SKIP_BYTES, 0, size, walk->path);
        return 0;
    }
    auto_fd file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0 && errno == EACCES && fchmodat(folder, name, 0600, 0) == 0)
        file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0) {
        skip(walk, AGENT_SKIP_READ, errno, size, walk->path);
        return 0;
    }
    struct agent_file head = {
        .size = size,
        .mtime_ns = nanoseconds_of(&status->st_mtim),
        .mode = status->st_mode,
    };
    walk->files_left--;
    walk->bytes_left -= size;
    send_frame(walk->sandbox, AGENT_FILE, 0, walk->id, &head, sizeof head, walk->path,
               strlen(walk->path));
    return send_file(walk->sandbox, walk->id, file, walk->path, size, err);
}

static int seal_file(const struct stat *status, error *err)
{
    if (input_count == INPUTS_MAX)
        return fail(err, ERR_LIMIT, "more than %d input files", INPUTS_MAX);
    inputs[input_count++] =
        (struct input){ status->st_ino, status->st_size, status->st_ctim, status->st_mtim };
    return 0;
}

static int visit_folder(struct walk *walk, int folder, size_t length, int depth, error *err);

/* NOLINTNEXTLINE(misc-no-recursion,readability-function-size): depth is bounded */
static int visit(struct walk *walk, int folder, const char *name, size_t length, int depth,
                 error *err) // NOLINT(misc-no-recursion): bounded by depth
{
    struct stat status;
    size_t size = strlen(name);
    if (length + size + 1 > AGENT_PATH_MAX) {
        walk->path[length] = '\0'; /* the folder is named instead */
        skip(walk, AGENT_SKIP_DEPTH, 0, 0, walk->path);
        return 0;
    }
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    memcpy(walk->path + length, name, size + 1);
    if (S_ISREG(status.st_mode)) {
        if (walk->sealing)
            return seal_file(&status, err);
        return is_unchanged_input(&status) ? 0 : take_file(walk, folder, name, &status, err);
    }
    if (walk->sealing && !S_ISDIR(status.st_mode))
        return 0;
    if (!S_ISDIR(status.st_mode)) {
        skip(walk, S_ISLNK(status.st_mode) ? AGENT_SKIP_LINK : AGENT_SKIP_SPECIAL, 0, 0,
             walk->path);
        return 0;
    }
    if (depth == 0) {
        skip(walk, AGENT_SKIP_DEPTH, 0, 0, walk->path);
        return 0;
    }
    auto_fd inner = open_inner(folder, name, O_RDONLY);
    if (inner < 0 && errno == EACCES && fchmodat(folder, name, 0700, 0) == 0)
        inner = open_inner(folder, name, O_RDONLY);
    if (inner < 0) {
        skip(walk, AGENT_SKIP_READ, errno, 0, walk->path);
        return 0;
    }
    walk->path[length + size] = '/';
    return visit_folder(walk, inner, length + size + 1, depth - 1, err);
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static int visit_folder(struct walk *walk, int folder, size_t length, int depth,
                        error *err) // NOLINT(misc-no-recursion): bounded by depth
{
    _Alignas(struct listed) char entries[4096];
    long got;
    while ((got = syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0)
        for_each_listed(entry, entries, got) {
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (visit(walk, folder, entry->name, length, depth, err) < 0)
                return -1;
        }
    return got < 0 ? fail_os(err, "list a folder") : 0;
}

static int walk_workspace(struct walk *walk, error *err)
{
    auto_fd folder = open_beneath(walk->sandbox->workspace, ".", O_RDONLY | O_DIRECTORY, 0, err);
    if (folder < 0 && err->os == EACCES && chmod("/workspace", 0755) == 0)
        folder = open_beneath(walk->sandbox->workspace, ".", O_RDONLY | O_DIRECTORY, 0, err);
    return folder < 0 ? -1 : visit_folder(walk, folder, 0, DEPTH_MAX, err);
}

static struct walk walk; /* one at a time; too large for the stack */

int seal_inputs(struct sandbox *sandbox, error *err)
{
    input_count = 0;
    walk = (struct walk){ .sandbox = sandbox, .sealing = true };
    return walk_workspace(&walk, err);
}

int collect_artifacts(struct sandbox *sandbox, uint32_t id, const struct agent_collect *order,
                      error *err)
{
    walk = (struct walk){
        .sandbox = sandbox,
        .id = id,
        .bytes_left = order->bytes_max,
        .files_left = order->files_max,
    };
    if (walk_workspace(&walk, err) < 0)
        return -1;
    if (walk.over_count > 0)
        skip(&walk, AGENT_SKIP_COUNT, 0, walk.over_count, "");
    return 0;
}
