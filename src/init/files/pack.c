/* pack.c - sends a folder as a tar while it reads it. GNU format: its long names are bytes, and
 * need not be UTF-8. The walk keeps its position between two turns and follows no link; sockets,
 * devices and FIFOs are reported and left out.
 *
 * What SAVE writes has no bytes for holes: see tar_reader.h. Each part holds a page of data or
 * more, except the last, so that headers add at most an eighth, however many holes there are. */
#include "init/operations.h"

#include "base/cleanup.h"
#include "base/table.h"
#include "init/files/tar_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    LEVELS_MAX = 64,
    ENTRIES_SIZE = 2048,
    BLOCK_SIZE = 65536,
    ROOM_FOR_HEADERS = 16384, /* a long name, a long link, and the header itself */
};

struct level {
    int folder;
    long got, at; /* in entries */
    size_t path_length;
    _Alignas(struct listed) char entries[ENTRIES_SIZE];
};

struct packing {
    uint32_t id; /* 0: this entry is free */
    unsigned depth;
    int file;
    uint64_t left;    /* of the file, or of this part of it */
    uint32_t padding; /* after it */
    off_t at, end;    /* of a file with holes: the next part begins at or after `at` */
    bool has_ended;
    bool skips_holes;
    unsigned place; /* for SAVE: the next of scratch_places */
    size_t size;    /* bytes in block */
    char path[AGENT_PATH_MAX + 1];
    char block[BLOCK_SIZE + ROOM_FOR_HEADERS];
    struct level levels[LEVELS_MAX];
};

static struct packing packings[2];

/* --- headers --- */

/* Octal where it fits, else GNU's big-endian form. */
static void put_number(char *field, unsigned size, uint64_t number)
{
    if (number >> (3 * (size - 1)) == 0) {
        for (unsigned i = size - 1; i-- > 0; number >>= 3)
            field[i] = (char) ('0' + (number & 7));
        return;
    }
    for (unsigned i = size; i-- > 0; number >>= 8)
        field[i] = (char) (number & 0xff);
    field[0] = (char) 0x80;
}

static void put_header(struct packing *packing, const char *name, char type,
                       const struct stat *status, const char *link)
{
    char *header = packing->block + packing->size;
    uint64_t size = type == '2' || type == '5' ? 0 : (uint64_t) status->st_size;
    unsigned sum = 0;
    memset(header, 0, TAR_BLOCK);
    memcpy(header, name, strnlen(name, 100));
    put_number(header + 100, 8, status->st_mode & 07777);
    put_number(header + 108, 8, 1000);
    put_number(header + 116, 8, 1000);
    put_number(header + 124, 12, size);
    put_number(header + 136, 12,
               status->st_mtim.tv_sec > 0 ? (uint64_t) status->st_mtim.tv_sec : 0);
    memset(header + 148, ' ', 8);
    header[156] = type;
    memcpy(header + 157, link, strnlen(link, 100));
    memcpy(header + 257, "ustar  ", 8); /* GNU's */
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the header is zero already */
    memcpy(header + 265, "user", 4);
    /* NOLINTNEXTLINE(bugprone-not-null-terminated-result): the same */
    memcpy(header + 297, "user", 4);
    for (unsigned i = 0; i < TAR_BLOCK; i++)
        sum += (unsigned char) header[i];
    put_number(header + 148, 7, sum);
    packing->size += TAR_BLOCK;
}

static void put_long(struct packing *packing, char type, const char *text)
{
    size_t length = strlen(text);
    struct stat status = { .st_size = (off_t) length + 1 };
    if (length <= 100)
        return;
    put_header(packing, "././@LongLink", type, &status, "");
    size_t whole = (length + 1 + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;
    memset(packing->block + packing->size, 0, whole);
    memcpy(packing->block + packing->size, text, length);
    packing->size += whole;
}

static void put_member(struct packing *packing, const char *name, char type,
                       const struct stat *status, const char *link)
{
    put_long(packing, 'L', name);
    put_long(packing, 'K', link);
    put_header(packing, name, type, status, link);
}

/* --- the walk --- */

static void skip(const struct sandbox *sandbox, const struct packing *packing,
                 enum agent_skip reason, int os)
{
    struct agent_skipped skipped = { .reason = reason, .os = os };
    send_frame(sandbox, AGENT_SKIPPED, 0, packing->id, &skipped, sizeof skipped, packing->path,
               strlen(packing->path));
}

static void enter_folder(const struct sandbox *sandbox, struct packing *packing, int folder,
                         const char *name, const struct stat *status)
{
    size_t length = strlen(packing->path);
    auto_fd inner = open_inner(folder, name, O_RDONLY);
    if (inner < 0 || packing->depth == LEVELS_MAX || length + 2 > sizeof packing->path) {
        skip(sandbox, packing, inner < 0 ? AGENT_SKIP_READ : AGENT_SKIP_DEPTH,
             inner < 0 ? errno : 0);
        return;
    }
    packing->path[length++] = '/';
    packing->path[length] = '\0';
    put_member(packing, packing->path, '5', status, "");
    struct level *level = &packing->levels[packing->depth++];
    level->folder = take_fd(&inner);
    level->got = level->at = 0;
    level->path_length = length;
}

static void enter_file(const struct sandbox *sandbox, struct packing *packing, int folder,
                       const char *name)
{
    struct stat status;
    auto_fd file = openat(folder, name, O_RDONLY | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY | O_CLOEXEC);
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode)) {
        skip(sandbox, packing, AGENT_SKIP_READ, file < 0 ? errno : EINVAL);
        return;
    }
    bool has_holes = packing->skips_holes && status.st_blocks < status.st_size / 512;
    put_member(packing, packing->path, has_holes ? TAR_HOLLOW : '0', &status, "");
    packing->at = 0;
    packing->end = has_holes ? status.st_size : 0;
    packing->left = has_holes ? 0 : (uint64_t) status.st_size;
    packing->padding = (uint32_t) (-packing->left & (TAR_BLOCK - 1));
    packing->file = take_fd(&file);
}

/* Announces the next data of a file with holes; after the last, the hole up to its end. */
static void put_part(struct packing *packing)
{
    off_t data = lseek(packing->file, packing->at, SEEK_DATA);
    if (data < 0 && errno != ENXIO) /* it cannot tell: the rest is data */
        data = packing->at;
    off_t hole = data < packing->at ? packing->end : lseek(packing->file, data, SEEK_HOLE);
    if (hole < 0)
        hole = packing->end;
    if (data < packing->at || hole <= data || data > packing->end) /* none is left, or it moved */
        data = hole = packing->end;
    if (hole > packing->end)
        hole = packing->end;
    struct stat part = { .st_size = hole - data, .st_mtim.tv_sec = data - packing->at };
    put_header(packing, "", TAR_PART, &part, "");
    (void) lseek(packing->file, data, SEEK_SET);
    packing->left = (uint64_t) part.st_size;
    packing->padding = (uint32_t) (-packing->left & (TAR_BLOCK - 1));
    packing->at = hole;
}

static void enter_entry(const struct sandbox *sandbox, struct packing *packing, const char *name)
{
    const struct level *level = &packing->levels[packing->depth - 1];
    static char link[AGENT_PATH_MAX + 1];
    struct stat status;
    size_t length = strlen(name);
    packing->path[level->path_length] = '\0';
    if (fstatat(level->folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return; /* it was removed meanwhile */
    if (level->path_length + length >= sizeof packing->path) {
        skip(sandbox, packing, AGENT_SKIP_DEPTH, 0);
        return;
    }
    memcpy(packing->path + level->path_length, name, length + 1);
    if (S_ISDIR(status.st_mode)) {
        enter_folder(sandbox, packing, level->folder, name, &status);
    } else if (S_ISREG(status.st_mode)) {
        enter_file(sandbox, packing, level->folder, name);
    } else if (S_ISLNK(status.st_mode)) {
        ssize_t got = readlinkat(level->folder, name, link, sizeof link - 1);
        link[got > 0 ? got : 0] = '\0';
        put_member(packing, packing->path, '2', &status, link);
    } else {
        skip(sandbox, packing, AGENT_SKIP_SPECIAL, 0);
    }
}

static void begin_walk(struct packing *packing, int folder)
{
    packing->depth = 1;
    packing->levels[0].got = packing->levels[0].at = 0;
    packing->levels[0].path_length = strlen(packing->path);
    packing->levels[0].folder = folder;
}

/* For SAVE: goes on with the next writable place. False: there is none left. */
static bool enter_place(const struct sandbox *sandbox, struct packing *packing)
{
    while (packing->place < SCRATCH_PLACES) {
        error err;
        const char *name = scratch_places[packing->place++];
        (void) snprintf(packing->path, sizeof packing->path, "/%s", name);
        int folder = open_path(sandbox, packing->path, O_RDONLY | O_DIRECTORY, &err);
        (void) snprintf(packing->path, sizeof packing->path, "%s/", name);
        if (folder < 0) {
            skip(sandbox, packing, AGENT_SKIP_READ, err.os);
            continue;
        }
        begin_walk(packing, folder);
        return true;
    }
    return false;
}

/* Goes on to the next entry; leaves a folder that has none left. */
static void walk_on(const struct sandbox *sandbox, struct packing *packing)
{
    if (packing->depth == 0) {
        if (enter_place(sandbox, packing))
            return;
        memset(packing->block + packing->size, 0, (size_t) 2 * TAR_BLOCK);
        packing->size += (size_t) 2 * TAR_BLOCK;
        packing->has_ended = true;
        return;
    }
    struct level *level = &packing->levels[packing->depth - 1];
    if (level->at >= level->got) {
        level->at = 0;
        level->got = syscall(SYS_getdents64, level->folder, level->entries, sizeof level->entries);
        if (level->got <= 0) {
            (void) close(level->folder);
            packing->depth--;
            return;
        }
    }
    const struct listed *entry = (const struct listed *) (level->entries + level->at);
    level->at += entry->length;
    if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0)
        enter_entry(sandbox, packing, entry->name);
}

/* A file that has become shorter is padded with zeros: the header has announced its size. */
static void copy_file(struct packing *packing)
{
    size_t room = BLOCK_SIZE - packing->size;
    size_t wanted = packing->left < room ? (size_t) packing->left : room;
    char *into = packing->block + packing->size;
    ssize_t got = wanted > 0 ? read(packing->file, into, wanted) : 0;
    if (got <= 0 && wanted > 0) {
        memset(into, 0, wanted);
        got = (ssize_t) wanted;
    }
    packing->size += (size_t) got;
    packing->left -= (uint64_t) got;
    if (packing->left > 0)
        return;
    memset(packing->block + packing->size, 0, packing->padding);
    packing->size += packing->padding;
    if (packing->at < packing->end) {
        put_part(packing);
        return;
    }
    (void) close(packing->file);
    packing->file = -1;
}

static void fill_block(const struct sandbox *sandbox, struct packing *packing, size_t wanted)
{
    for (unsigned steps = 0; packing->size < wanted && !packing->has_ended && steps < 512;
         steps++) {
        if (packing->file >= 0)
            copy_file(packing);
        else
            walk_on(sandbox, packing);
    }
}

static int step_pack(struct sandbox *sandbox, struct operation *operation, error *err)
{
    (void) err;
    struct packing *packing = operation->room;
    size_t wanted = operation->credit < BLOCK_SIZE ? (size_t) operation->credit : BLOCK_SIZE;
    fill_block(sandbox, packing, wanted);
    size_t part = packing->size < wanted ? packing->size : wanted;
    if (part > 0)
        operation_send(sandbox, operation, AGENT_DATA, packing->block, part);
    packing->size -= part;
    memmove(packing->block, packing->block + part, packing->size);
    if (!packing->has_ended || packing->size > 0)
        return OPERATION_GOES_ON;
    operation_send(sandbox, operation, AGENT_END, NULL, 0);
    return OPERATION_ENDS;
}

static void close_pack(struct operation *operation)
{
    struct packing *packing = operation->room;
    while (packing->depth > 0)
        (void) close(packing->levels[--packing->depth].folder);
    close_fd(&packing->file);
    packing->id = 0;
}

static const struct operation_kind being_packed = { .step = step_pack, .close = close_pack };

static struct packing *take_packing(error *err)
{
    for_each(place, packings)
        if (place->id == 0) {
            place->file = -1;
            place->size = 0;
            place->depth = 0;
            place->has_ended = place->skips_holes = false;
            place->place = SCRATCH_PLACES;
            place->path[0] = '\0';
            return place;
        }
    errno = EAGAIN;
    (void) fail_os(err, "%zu folders are being packed already", COUNT_OF(packings));
    return NULL;
}

int begin_pack(struct sandbox *sandbox, const struct frame *in, error *err)
{
    struct agent_flow order;
    struct operation *operation;
    memcpy(&order, in->payload, sizeof order);
    auto_fd folder =
        open_path(sandbox, (const char *) in->payload + sizeof order, O_RDONLY | O_DIRECTORY, err);
    if (folder < 0)
        return -1;
    struct packing *packing = take_packing(err);
    if (!packing || operation_begin(in->head.id, &being_packed, &operation, err) < 0)
        return -1;
    packing->id = in->head.id;
    begin_walk(packing, take_fd(&folder));
    operation->room = packing;
    operation->credit = order.credit;
    send_frame(sandbox, AGENT_OPENED, 0, in->head.id, NULL, 0, NULL, 0);
    return 0;
}

/* --- into a pipe ------------------------------------------------------------------------------ */

static short wants_room(const struct operation *operation)
{
    (void) operation;
    return POLLOUT;
}

/* Writes until the pipe is full, but at most PIPE_TURN blocks, so that others get their turn. */
static int fill_pipe(struct sandbox *sandbox, struct operation *operation, short events, error *err)
{
    (void) events;
    enum { PIPE_TURN = 16 };
    struct packing *packing = operation->room;
    for (unsigned turn = 0; turn < PIPE_TURN; turn++) {
        fill_block(sandbox, packing, BLOCK_SIZE);
        ssize_t put = packing->size > 0 ? write(operation->fd, packing->block, packing->size) : 0;
        if (put < 0 && (errno == EAGAIN || errno == EINTR))
            return OPERATION_GOES_ON;
        if (put < 0)
            return fail_os(err, "write what is kept");
        packing->size -= (size_t) put;
        memmove(packing->block, packing->block + put, packing->size);
        if (packing->has_ended && packing->size == 0)
            return OPERATION_ENDS;
    }
    return OPERATION_GOES_ON;
}

static const struct operation_kind being_saved = { .wants = wants_room,
                                                   .ready = fill_pipe,
                                                   .close = close_pack };

int begin_save(struct sandbox *sandbox, const struct frame *in, error *err)
{
    (void) sandbox;
    struct operation *operation;
    auto_fd pipe = fcntl(in->fd, F_DUPFD_CLOEXEC, 3);
    if (pipe < 0 || fcntl(pipe, F_SETFL, O_NONBLOCK) < 0)
        return fail_os(err, "take the pipe");
    struct packing *packing = take_packing(err);
    if (!packing || operation_begin(in->head.id, &being_saved, &operation, err) < 0)
        return -1;
    packing->id = in->head.id;
    packing->place = 0;
    packing->skips_holes = true;
    operation->room = packing;
    operation->fd = take_fd(&pipe);
    return 0;
}
