/* segment.c - reads and writes frames, and finds segments. */
#include "ledger/segment.h"

#include "base/auto_free.h"
#include "base/cleanup.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

static const uint32_t magic = 0x31524247; /* "GBR1" */

struct frame {
    uint32_t magic, size;
    uint64_t index;
    unsigned char check[8];
};

_Static_assert(sizeof(struct frame) == FRAME_SIZE, "a frame has no padding");

void frame_write(uint64_t index, size_t size, const struct merkle_hash *leaf,
                 unsigned char ret_frame[FRAME_SIZE])
{
    struct frame frame = { htole32(magic), htole32((uint32_t) size), htole64(index), { 0 } };
    memcpy(frame.check, leaf->bytes, sizeof frame.check);
    memcpy(ret_frame, &frame, sizeof frame);
}

void segment_name(uint64_t first, char ret_name[SEGMENT_NAME_SIZE])
{
    (void) snprintf(ret_name, SEGMENT_NAME_SIZE, "%020" PRIu64 ".log", first);
}

static bool segment_name_read(const char *name, uint64_t *ret_first)
{
    if (strlen(name) != SEGMENT_NAME_SIZE - 1 || strspn(name, "0123456789") != 20 ||
        strcmp(name + 20, ".log") != 0)
        return false;
    errno = 0;
    *ret_first = strtoull(name, NULL, 10);
    return errno == 0;
}

int segment_map(int file, struct segment *ret_segment, error *err)
{
    struct stat status;
    if (fstat(file, &status) < 0)
        return fail_os(err, "look at a segment of the log");
    *ret_segment = (struct segment){ .size = (size_t) status.st_size };
    if (ret_segment->size == 0)
        return 0;
    void *data = mmap(NULL, ret_segment->size, PROT_READ, MAP_SHARED, file, 0);
    if (data == MAP_FAILED)
        return fail_os(err, "read a segment of the log");
    ret_segment->data = data;
    return 0;
}

void segment_unmap(struct segment *segment)
{
    if (segment->data)
        (void) munmap((void *) (uintptr_t) segment->data, segment->size);
    *segment = (struct segment){ 0 };
}

int segment_next(const struct segment *segment, uint64_t offset, uint64_t index,
                 struct record *ret_record)
{
    if (offset >= segment->size)
        return SEGMENT_END;
    struct frame frame;
    if (segment->size - offset < sizeof frame)
        return SEGMENT_TORN;
    memcpy(&frame, segment->data + offset, sizeof frame);
    size_t size = le32toh(frame.size);
    if (le32toh(frame.magic) != magic || le64toh(frame.index) != index || size == 0 ||
        size > RECORD_MAX || segment->size - offset - sizeof frame < size)
        return SEGMENT_TORN;
    *ret_record = (struct record){ .index = index,
                                   .offset = offset,
                                   .data = segment->data + offset + sizeof frame,
                                   .size = size };
    memcpy(ret_record->check, frame.check, sizeof frame.check);
    return SEGMENT_RECORD;
}

bool record_is_whole(const struct record *record, struct merkle_hash *ret_leaf)
{
    merkle_leaf(record->data, record->size, ret_leaf);
    return memcmp(ret_leaf->bytes, record->check, sizeof record->check) == 0;
}

static int compare(const void *left, const void *right)
{
    uint64_t one = *(const uint64_t *) left, other = *(const uint64_t *) right;
    return one < other ? -1 : one > other;
}

struct firsts {
    uint64_t *list;
    size_t count, room;
};

static bool add_first(struct firsts *firsts, uint64_t first)
{
    if (firsts->count == firsts->room) {
        size_t room = firsts->room ? 2 * firsts->room : 64;
        uint64_t *more = reallocarray(firsts->list, room, sizeof *more);
        if (!more)
            return false;
        firsts->list = more;
        firsts->room = room;
    }
    firsts->list[firsts->count++] = first;
    return true;
}

int segments_list(int folder, uint64_t **ret_firsts, size_t *ret_count, error *err)
{
    int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = copy < 0 ? NULL : fdopendir(copy);
    if (!entries) {
        close_fd(&copy);
        return fail_os(err, "list the segments of the log");
    }
    struct firsts firsts = { 0 };
    const struct dirent *entry;
    uint64_t first;
    while (errno = 0, (entry = readdir(entries))) /* NOLINT(concurrency-mt-unsafe): our own */
        if (segment_name_read(entry->d_name, &first) && !add_first(&firsts, first))
            break;
    int result = errno == 0 ? 0 : fail_os(err, "list the segments of the log");
    (void) closedir(entries);
    if (result < 0) {
        free(firsts.list);
        return -1;
    }
    if (firsts.count > 0)
        qsort(firsts.list, firsts.count, sizeof *firsts.list, compare);
    *ret_firsts = firsts.list;
    *ret_count = firsts.count;
    return 0;
}

struct reader {
    uint64_t from;
    int (*each)(void *context, const struct record *record, error *err);
    void *context;
};

static int each_in(int file, uint64_t first, const struct reader *reader, error *err)
{
    struct segment segment;
    struct record record;
    int result = 0;
    if (segment_map(file, &segment, err) < 0)
        return -1;
    uint64_t offset = 0;
    for (uint64_t index = first; result == 0; index++) {
        if (segment_next(&segment, offset, index, &record) != SEGMENT_RECORD)
            break;
        offset = record.offset + FRAME_SIZE + record.size;
        if (index >= reader->from)
            result = reader->each(reader->context, &record, err);
    }
    segment_unmap(&segment);
    return result;
}

int segments_each(int folder, uint64_t from,
                  int (*each)(void *context, const struct record *record, error *err),
                  void *context, error *err)
{
    const struct reader reader = { from, each, context };
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(folder, &firsts, &count, err) < 0)
        return -1;
    int result = 0;
    for (size_t i = 0; result == 0 && i < count; i++) {
        char name[SEGMENT_NAME_SIZE];
        if (i + 1 < count && firsts[i + 1] <= from)
            continue;
        segment_name(firsts[i], name);
        auto_fd file = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        result = file < 0 ? fail_os(err, "open segment %s of the log", name)
                          : each_in(file, firsts[i], &reader, err);
    }
    return result;
}

struct wanted {
    uint64_t index;
    struct bytes *out;
};

enum { FOUND = 1 };

static int take_wanted(void *context, const struct record *record, error *err)
{
    const struct wanted *wanted = context;
    if (record->index != wanted->index)
        return fail(err, ERR_NOT_FOUND, "record %" PRIu64 " is no longer kept", wanted->index);
    bytes_add(wanted->out, record->data, record->size);
    return FOUND;
}

int segments_read(int folder, uint64_t index, struct bytes *out, error *err)
{
    struct wanted wanted = { index, out };
    int result = segments_each(folder, index, take_wanted, &wanted, err);
    if (result == 0)
        return fail(err, ERR_NOT_FOUND, "the log has no record %" PRIu64, index);
    return result < 0 ? -1 : 0;
}
