/* disk.c - the disk of the state folder: which calls fail, and what a power cut leaves.
 *
 * Files are real, on a file system in memory, where the page cache is all there is. Beside them
 * lies what the disk has: of each file the bytes as they were at its last sync. Names follow the
 * journal of a file system (ext4, XFS): each sync brings every change of names before it to disk,
 * and of those after it a power cut keeps the first few. Of bytes that were not synced it keeps any
 * sectors. A sync that fails drops what it was to write: only what is written again is brought to
 * disk by the next one (fsync(2), "NOTES").
 */
#include "disk_internal.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SECTOR = 512, FILES_MAX = 512, NAMES_MAX = 2048, HEAP = 64 << 20 };

/* What the disk has of a file, and what it will never get unless it is written again. */
struct shadow {
    ino_t inode;
    size_t size, room, at; /* in the heap */
    size_t failed_at, failed_size;
};

static struct disk {
    unsigned file_count, change_count, grave_count;
    size_t heap_used;
    struct shadow files[FILES_MAX];
    struct change changes[NAMES_MAX];
    dev_t device;
    unsigned char heap[HEAP];
} * disk;

void disk_map(void)
{
    disk = mmap(NULL, sizeof *disk, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (disk == MAP_FAILED)
        abort();
}

void disk_begin(void)
{
    struct stat status;
    if (stat(places.state, &status) < 0)
        abort();
    disk->file_count = disk->change_count = disk->grave_count = 0;
    disk->heap_used = 0;
    disk->device = status.st_dev;
}

bool is_of_state(int fd, struct stat *ret_status)
{
    return sim_is_on && fstat(fd, ret_status) == 0 && ret_status->st_dev == disk->device &&
           (S_ISREG(ret_status->st_mode) || S_ISDIR(ret_status->st_mode));
}

bool is_faulty(unsigned of_100)
{
    if (of_100 == 0 || world->clock_us < world->faults.from_us ||
        world->clock_us > world->faults.until_us || chance(100) >= of_100)
        return false;
    world->last_fault_us = world->clock_us;
    return true;
}

/* --- what the disk has ------------------------------------------------------------------------ */

static size_t allocate(size_t size)
{
    size_t at = disk->heap_used;
    if (size > HEAP - at)
        abort();
    disk->heap_used = at + (size + 63) / 64 * 64;
    return at;
}

static struct shadow *shadow_of(ino_t inode, bool may_add)
{
    for (unsigned i = disk->file_count; i-- > 0;)
        if (disk->files[i].inode == inode)
            return &disk->files[i];
    if (!may_add)
        return NULL;
    if (disk->file_count == FILES_MAX)
        abort();
    struct shadow *fresh = &disk->files[disk->file_count++];
    *fresh = (struct shadow){ .inode = inode };
    return fresh;
}

void file_is_new(ino_t inode)
{
    *shadow_of(inode, true) = (struct shadow){ .inode = inode };
}

/* Sector by sector what is in the file goes to the disk, but what a failed sync has dropped. */
void write_back(ino_t inode, int fd, size_t size)
{
    static unsigned char sector[SECTOR];
    struct shadow *shadow = shadow_of(inode, true);
    if (size > shadow->room) {
        size_t room = size + size / 2, at = allocate(room);
        memcpy(disk->heap + at, disk->heap + shadow->at, shadow->size);
        shadow->at = at;
        shadow->room = room;
    }
    unsigned char *to = disk->heap + shadow->at;
    if (size > shadow->size)
        memset(to + shadow->size, 0, size - shadow->size);
    if (shadow->failed_size == 0) {
        (void) !pread(fd, to, size, 0);
        shadow->size = size;
        return;
    }
    for (size_t at = 0; at < size; at += SECTOR) {
        size_t length = size - at < SECTOR ? size - at : SECTOR;
        (void) !pread(fd, sector, length, (off_t) at);
        size_t known = at < shadow->failed_size ? shadow->failed_size - at : 0;
        if (known > length)
            known = length;
        bool is_again = at < shadow->failed_size &&
                        disk->heap[shadow->failed_at + shadow->failed_size + at / SECTOR];
        if (is_again || known < length ||
            memcmp(sector, disk->heap + shadow->failed_at + at, known) != 0)
            memcpy(to + at, sector, length);
    }
    shadow->size = size;
}

void drop_writes(ino_t inode, int fd, size_t size)
{
    struct shadow *shadow = shadow_of(inode, true);
    size_t sectors = size / SECTOR + 1;
    shadow->failed_at = allocate(size + sectors);
    memset(disk->heap + shadow->failed_at + size, 0, sectors);
    shadow->failed_size = size;
    (void) !pread(fd, disk->heap + shadow->failed_at, size, 0);
}

/* These sectors are written again: the next sync brings them to disk. */
void touch(ino_t inode, off_t at, size_t size)
{
    struct shadow *shadow = shadow_of(inode, false);
    if (!shadow || shadow->failed_size == 0)
        return;
    unsigned char *is_touched = disk->heap + shadow->failed_at + shadow->failed_size;
    for (size_t i = (size_t) at; i < (size_t) at + size && i < shadow->failed_size;
         i = i / SECTOR * SECTOR + SECTOR)
        is_touched[i / SECTOR] = 1;
}

void changes_are_on_disk(void)
{
    char path[300];
    disk->change_count = 0;
    for (; disk->grave_count > 0; disk->grave_count--) {
        (void) snprintf(path, sizeof path, "%s/%u", places.graves, disk->grave_count);
        (void) unlink(path);
    }
}

/* --- names ------------------------------------------------------------------------------------ */

/* Those of SQLite, whose own calls are not simulated. */
bool is_left_out(const char *name)
{
    return strncmp(name, "keys.", 5) == 0 || strncmp(name, "approvals.", 10) == 0;
}

struct change *note_change(enum change_kind kind, const char *name)
{
    if (disk->change_count == NAMES_MAX)
        abort();
    struct change *change = &disk->changes[disk->change_count++];
    *change = (struct change){ .kind = kind };
    (void) snprintf(change->name, sizeof change->name, "%s", name);
    trace("%s %s",
          kind == CHANGE_ADDED   ? "adds"
          : kind == CHANGE_MOVED ? "moves"
                                 : "removes",
          name);
    return change;
}

unsigned bury(const char *place)
{
    char path[300], grave[300];
    (void) snprintf(path, sizeof path, "%s/%s", places.state, place);
    (void) snprintf(grave, sizeof grave, "%s/%u", places.graves, disk->grave_count + 1);
    return link(path, grave) == 0 ? ++disk->grave_count : 0;
}

/* --- the power cut ---------------------------------------------------------------------------- */

static void undo(const struct change *change)
{
    char path[300], other[300], grave[300];
    (void) snprintf(path, sizeof path, "%s/%s", places.state, change->name);
    (void) snprintf(other, sizeof other, "%s/%s", places.state, change->to);
    (void) snprintf(grave, sizeof grave, "%s/%u", places.graves, change->grave);
    switch (change->kind) {
    case CHANGE_ADDED:
        (void) remove(path);
        break;
    case CHANGE_MOVED:
        (void) rename(other, path);
        if (change->grave)
            (void) !link(grave, other);
        break;
    case CHANGE_REMOVED:
        if (change->grave)
            (void) !link(grave, path);
        break;
    }
}

/* Of what was not synced any sector may be there: else what was there before, or nothing. */
static void mix_bytes(unsigned char *now, const struct shadow *shadow, size_t end)
{
    static const unsigned char nothing[SECTOR];
    unsigned keeps = (unsigned) chance(5) * 25; /* of 100 sectors */
    for (size_t at = 0; at < end; at += SECTOR) {
        size_t length = end - at < SECTOR ? end - at : SECTOR;
        size_t known = at < shadow->size ? shadow->size - at : 0;
        const unsigned char *then = disk->heap + shadow->at + at;
        known = known < length ? known : length;
        bool is_same = memcmp(now + at, then, known) == 0 &&
                       memcmp(now + at + known, nothing, length - known) == 0;
        if (is_same || chance(100) < keeps)
            continue;
        memcpy(now + at, then, known);
        memset(now + at + known, 0, length - known);
    }
}

static void mix(int fd)
{
    struct stat status;
    if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode))
        return;
    struct shadow *shadow = shadow_of(status.st_ino, true);
    size_t size = (size_t) status.st_size, end = chance(2) ? size : shadow->size;
    if (size > shadow->size && one_in(3))
        end = shadow->size + chance(size - shadow->size);
    unsigned char *now = __real_calloc(1, end + 1);
    if (!now)
        abort();
    (void) !pread(fd, now, end < size ? end : size, 0);
    mix_bytes(now, shadow, end);
    (void) !pwrite(fd, now, end, 0);
    (void) !ftruncate(fd, (off_t) end);
    free(now);
    shadow->failed_size = 0;
    write_back(status.st_ino, fd, end);
}

static int by_name(const struct dirent **one, const struct dirent **other)
{
    return strcmp((*one)->d_name, (*other)->d_name);
}

static void mix_folder(const char *path)
{
    struct dirent **entries;
    int count = scandir(path, &entries, NULL, by_name);
    for (int i = 0; i < count; i++) {
        char name[400];
        struct stat status;
        (void) snprintf(name, sizeof name, "%s/%s", path, entries[i]->d_name);
        bool is_left = entries[i]->d_name[0] == '.' || is_left_out(entries[i]->d_name);
        free(entries[i]);
        if (is_left || lstat(name, &status) < 0)
            continue;
        if (S_ISDIR(status.st_mode)) {
            mix_folder(name); /* NOLINT(misc-no-recursion): two levels deep */
            continue;
        }
        int fd = open(name, O_RDWR | O_CLOEXEC);
        if (fd >= 0) {
            mix(fd);
            (void) close(fd);
        }
    }
    if (count >= 0)
        free(entries);
}

void disk_cut(void)
{
    unsigned kept = (unsigned) chance(disk->change_count + 1);
    trace("of %u changes of names %u are on the disk", disk->change_count, kept);
    for (unsigned i = disk->change_count; i-- > kept;)
        undo(&disk->changes[i]);
    changes_are_on_disk();
    mix_folder(places.state);
}
