/* watch.c - reports changes below a folder by inotify(7). A deep watch follows folders that are
 * made, moved in and moved away. Folders are bounded by the array here, waiting events by the
 * kernel's queue. Lost events are reported as AGENT_CHANGE_LOST: the receiver lists the folder
 * again. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    FOLDERS_MAX = 1024, /* of one watch */
    DEPTH_MAX = 64,
    EVENTS = IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |
             IN_DELETE_SELF | IN_MOVE_SELF,
};

/* A watched folder; the first is the one of the order. */
struct watched_folder {
    int number; /* inotify's; -1: this entry is free */
    int folder; /* O_PATH, so that it is found after it was renamed */
    unsigned parent;
    char name[NAME_MAX + 1];
};

struct watching {
    uint32_t id; /* 0: this entry is free */
    bool is_deep;
    int above;      /* inotify's number of the folder above the first */
    unsigned count; /* entries that have been used */
    struct watched_folder folders[FOLDERS_MAX];
};

static struct watching watchings[2];

static void tell_change(const struct sandbox *sandbox, struct operation *operation,
                        const struct watched_folder *folder, enum agent_change_what what,
                        const char *path)
{
    struct agent_change change = { .what = what };
    struct stat status;
    const char *name = strrchr(path, '/');
    name = name ? name + 1 : path;
    if (folder && fstatat(folder->folder, name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        change.size = (uint64_t) status.st_size;
        change.mode = status.st_mode;
        change.mtime_ns = nanoseconds_of(&status.st_mtim);
    }
    size_t size = strlen(path);
    uint64_t cost = sizeof change + size;
    operation->credit -= cost < operation->credit ? cost : operation->credit;
    send_frame(sandbox, AGENT_CHANGE, 0, operation->id, &change, sizeof change, path, size);
}

static struct watched_folder *free_folder(struct watching *watching)
{
    for (unsigned i = 0; i < watching->count; i++)
        if (watching->folders[i].number < 0)
            return &watching->folders[i];
    return watching->count < FOLDERS_MAX ? &watching->folders[watching->count++] : NULL;
}

/* inotify_add_watch(2) needs a path: /proc/self/fd/N is the folder itself. */
static int add_watch(const struct operation *operation, int fd, uint32_t events)
{
    static const char digits[] = "0123456789";
    char path[32] = "/proc/self/fd/";
    size_t at = strlen(path);
    unsigned scale = 1;
    while (scale <= (unsigned) fd / 10)
        scale *= 10;
    for (; scale > 0; scale /= 10)
        path[at++] = digits[(unsigned) fd / scale % 10];
    path[at] = '\0';
    return inotify_add_watch(operation->fd, path, events | IN_ONLYDIR);
}

/* Takes: `folder`. */
static struct watched_folder *add_folder(const struct operation *operation, int folder,
                                         unsigned parent, const char *name)
{
    auto_fd fd = folder;
    struct watching *watching = operation->room;
    int number = add_watch(operation, fd, EVENTS);
    if (number < 0)
        return NULL;
    for (unsigned i = 0; i < watching->count; i++)
        if (watching->folders[i].number == number)
            return &watching->folders[i]; /* it is watched already */
    struct watched_folder *place = free_folder(watching);
    if (!place) {
        (void) inotify_rm_watch(operation->fd, number);
        return NULL;
    }
    place->number = number;
    place->folder = take_fd(&fd);
    place->parent = parent;
    size_t length = strnlen(name, sizeof place->name - 1);
    memcpy(place->name, name, length);
    place->name[length] = '\0';
    return place;
}

/* Adds a folder and those below it. `tell`: entries that are found were made before the watch
 * began, and are reported. False if something could not be watched.
 * NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static bool add_below(const struct sandbox *sandbox, struct operation *operation, int folder,
                      unsigned parent, const char *name, int depth, bool tell);

static void path_of(const struct watching *watching, const struct watched_folder *folder,
                    const char *name, char *path)
{
    char *at = path + AGENT_PATH_MAX;
    size_t length = strlen(name);
    *at = '\0';
    at -= length;
    memcpy(at, name, length);
    for (unsigned levels = 0; folder != watching->folders && levels <= DEPTH_MAX; levels++) {
        size_t size = strlen(folder->name);
        if ((size_t) (at - path) < size + 1)
            break;
        *--at = '/';
        at -= size;
        memcpy(at, folder->name, size);
        folder = &watching->folders[folder->parent];
    }
    memmove(path, at, strlen(at) + 1);
}

/* NOLINTNEXTLINE(misc-no-recursion): depth is bounded */
static bool look_below(const struct sandbox *sandbox, struct operation *operation,
                       const struct watched_folder *place, int depth, bool tell)
{
    _Alignas(struct listed) char entries[2048];
    static char path[AGENT_PATH_MAX + 1];
    const struct watching *watching = operation->room;
    bool all = true;
    long got;
    auto_fd listing = openat(place->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    while (listing >= 0 && (got = syscall(SYS_getdents64, listing, entries, sizeof entries)) > 0) {
        for_each_listed(entry, entries, got) {
            if (strcmp(entry->name, ".") == 0 || strcmp(entry->name, "..") == 0)
                continue;
            if (tell) {
                path_of(watching, place, entry->name, path);
                tell_change(sandbox, operation, place, AGENT_CHANGE_CREATE, path);
            }
            if (entry->type != DT_DIR)
                continue;
            int inner = open_inner(place->folder, entry->name, O_PATH);
            unsigned own = (unsigned) (place - watching->folders);
            if (inner >= 0 && (depth == 0 || !add_below(sandbox, operation, inner, own, entry->name,
                                                        depth - 1, tell))) {
                if (depth == 0)
                    (void) close(inner);
                all = false;
            }
        }
    }
    return all;
}

/* NOLINTNEXTLINE(misc-no-recursion,readability-function-size): depth is bounded */
static bool add_below(const struct sandbox *sandbox, struct operation *operation, int folder,
                      unsigned parent, const char *name, int depth, bool tell)
{
    const struct watching *watching = operation->room;
    const struct watched_folder *place = add_folder(operation, folder, parent, name);
    if (!place)
        return false;
    return !watching->is_deep || look_below(sandbox, operation, place, depth, tell);
}

static void forget_folder(const struct operation *operation, struct watched_folder *folder)
{
    (void) inotify_rm_watch(operation->fd, folder->number);
    (void) close(folder->folder);
    folder->number = -1;
}

/* A folder has been moved away: it and the folders below it are not watched any more. */
static void forget_below(const struct operation *operation, unsigned parent, const char *name)
{
    struct watching *watching = operation->room;
    bool gone[FOLDERS_MAX] = { false }, more = true;
    for (unsigned i = 1; i < watching->count; i++)
        gone[i] = watching->folders[i].number >= 0 && watching->folders[i].parent == parent &&
                  strcmp(watching->folders[i].name, name) == 0;
    while (more) {
        more = false;
        for (unsigned i = 1; i < watching->count; i++)
            if (!gone[i] && watching->folders[i].number >= 0 && gone[watching->folders[i].parent])
                gone[i] = more = true;
    }
    for (unsigned i = 1; i < watching->count; i++)
        if (gone[i])
            forget_folder(operation, &watching->folders[i]);
}

static enum agent_change_what change_of(uint32_t mask)
{
    static const struct {
        uint32_t mask;
        enum agent_change_what what;
    } rows[] = {
        { IN_CREATE | IN_MOVED_TO, AGENT_CHANGE_CREATE },
        { IN_MODIFY, AGENT_CHANGE_WRITE },
        { IN_DELETE, AGENT_CHANGE_REMOVE },
        { IN_MOVED_FROM, AGENT_CHANGE_RENAME },
        { IN_ATTRIB, AGENT_CHANGE_MODE },
    };
    for_each(row, rows)
        if (mask & row->mask)
            return row->what;
    return 0;
}

/* Begins and ends watches as folders are made, moved and removed. */
static void follow(const struct sandbox *sandbox, struct operation *operation,
                   const struct watched_folder *place, const struct inotify_event *event)
{
    const struct watching *watching = operation->room;
    unsigned own = (unsigned) (place - watching->folders);
    if (!watching->is_deep || !(event->mask & IN_ISDIR))
        return;
    if (event->mask & (IN_MOVED_FROM | IN_DELETE))
        forget_below(operation, own, event->name);
    if (!(event->mask & (IN_CREATE | IN_MOVED_TO)))
        return;
    int folder = open_inner(place->folder, event->name, O_PATH);
    if (folder >= 0 && !add_below(sandbox, operation, folder, own, event->name, DEPTH_MAX, true))
        tell_change(sandbox, operation, NULL, AGENT_CHANGE_LOST, "");
}

/* The first folder was removed. IN_DELETE_SELF does not come while it is open here, but what
 * happens in the folder above does. */
static bool is_removed(const struct watching *watching, const struct inotify_event *event)
{
    struct stat status;
    return event->wd == watching->above && fstat(watching->folders[0].folder, &status) == 0 &&
           status.st_nlink == 0;
}

static int hear_event(const struct sandbox *sandbox, struct operation *operation,
                      const struct inotify_event *event, error *err)
{
    static char path[AGENT_PATH_MAX + 1];
    struct watching *watching = operation->room;
    const struct watched_folder *place = NULL;
    if (event->mask & IN_Q_OVERFLOW) {
        tell_change(sandbox, operation, NULL, AGENT_CHANGE_LOST, "");
        return OPERATION_GOES_ON;
    }
    for (unsigned i = 0; i < watching->count; i++)
        if (watching->folders[i].number == event->wd)
            place = &watching->folders[i];
    if (!place && !is_removed(watching, event))
        return OPERATION_GOES_ON; /* of the folder above, or of one that is not watched any more */
    if (!place || (event->mask & (IN_DELETE_SELF | IN_MOVE_SELF | IN_UNMOUNT))) {
        if (place && place != watching->folders)
            return OPERATION_GOES_ON; /* the event of its parent reports it */
        errno = ENOENT;
        return fail_os(err, "the watched folder is gone");
    }
    enum agent_change_what what = event->len > 0 ? change_of(event->mask) : 0;
    if (what == 0)
        return OPERATION_GOES_ON;
    path_of(watching, place, event->name, path);
    tell_change(sandbox, operation, place, what, path);
    follow(sandbox, operation, place, event);
    return OPERATION_GOES_ON;
}

static short watch_wants(const struct operation *operation)
{
    return operation->credit > 0 ? POLLIN : 0;
}

static int watch_ready(struct sandbox *sandbox, struct operation *operation, short events,
                       error *err)
{
    _Alignas(struct inotify_event) char bytes[4096];
    (void) events;
    ssize_t got = read(operation->fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return OPERATION_GOES_ON;
    if (got <= 0)
        return fail_os(err, "read what has changed");
    for (ssize_t at = 0; at < got;) {
        const struct inotify_event *event = (const struct inotify_event *) (bytes + at);
        at += (ssize_t) (sizeof *event + event->len);
        int how = hear_event(sandbox, operation, event, err);
        if (how != OPERATION_GOES_ON)
            return how;
    }
    return OPERATION_GOES_ON;
}

static void close_watch(struct operation *operation)
{
    struct watching *watching = operation->room;
    for (unsigned i = 0; i < watching->count; i++)
        if (watching->folders[i].number >= 0)
            (void) close(watching->folders[i].folder);
    watching->id = 0;
}

static const struct operation_kind watched = { .wants = watch_wants,
                                               .ready = watch_ready,
                                               .close = close_watch };

int begin_watch(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_watch order;
    struct operation *operation;
    memcpy(&order, in->payload, sizeof order);
    auto_fd folder =
        open_path(sandbox, (const char *) in->payload + sizeof order, O_PATH | O_DIRECTORY, err);
    if (folder < 0)
        return -1;
    struct watching *watching = NULL;
    for_each(place, watchings)
        if (place->id == 0)
            watching = place;
    if (!watching) {
        errno = EAGAIN;
        return fail_os(err, "%zu folders are being watched already", COUNT_OF(watchings));
    }
    auto_fd queue = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (queue < 0)
        return fail_os(err, "watch a folder");
    watching->id = in->head.id;
    watching->is_deep = order.flags & AGENT_WATCH_DEEP;
    watching->count = 0;
    struct operation begun = { .id = in->head.id, .fd = queue, .room = watching };
    auto_fd above = openat(folder, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool all = add_below(sandbox, &begun, take_fd(&folder), 0, "", DEPTH_MAX, false);
    watching->above = add_watch(&begun, above, IN_DELETE | IN_MASK_ADD);
    if (watching->count == 0 || operation_begin(in->head.id, &watched, &operation, err) < 0) {
        int os = watching->count == 0 ? errno : EAGAIN;
        close_watch(&begun);
        errno = os;
        return fail_os(err, "watch the folder");
    }
    operation->room = watching;
    operation->fd = take_fd(&queue);
    operation->credit = order.credit;
    send_frame(sandbox, AGENT_OPENED, 0, in->head.id, NULL, 0, NULL, 0);
    if (!all)
        tell_change(sandbox, operation, NULL, AGENT_CHANGE_LOST, "");
    return 0;
}
