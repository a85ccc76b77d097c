/* space.c - lists the memory of this process for an image (space_pages.c writes the pages).
 *
 * A mapped file of the template is stored by its name, with only the pages that were changed. All
 * else is copied: private memory as far as it was touched, shared memory whole. Runs in a child of
 * fork(2), which has one thread and may not allocate. */
#include "interpreter/image/image_parts.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "base/text.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { SHARED_MAX = 1 << 30 };

/* For more than this, reading the list of pages would take seconds. */
#define SPACE_MAX (UINT64_C(1) << 40)

/* Files here cannot be changed, but are other inodes for another fork server. */
static const char our_place[] = "/usr/lib/glovebox/";

/* A line of /proc/self/maps. */
struct mapping {
    uint64_t start, end, offset, inode;
    unsigned major, minor;
    int protect;
    bool is_shared;
    char *path; /* in the text of the lines; empty if there is none */
};

struct look {
    struct space *space;
    const struct place *place;
    int memory;      /* of /proc/self */
    uint64_t shared; /* bytes */
    /* The last file that was checked: neighbouring mappings mostly have the same. */
    const char *last_path;
    struct stat last;
    bool last_is_constant, last_is_there;
    uint32_t last_name;
};

static int read_maps(struct space *space, error *err)
{
    ssize_t got = read_text_at(AT_FDCWD, "/proc/self/maps", space->maps, sizeof space->maps);
    if (got < 0)
        return fail_os(err, "read /proc/self/maps");
    if (got == sizeof space->maps - 1)
        return fail(err, ERR_UNAVAILABLE, "/proc/self/maps is too long");
    return 0;
}

/* The kernel writes a newline in a name as \012. */
static void decode_path(char *path)
{
    char *to = path;
    for (const char *from = path; *from; to++) {
        if (strncmp(from, "\\012", 4) == 0) {
            *to = '\n';
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

static void read_mapping(char *line, struct mapping *mapping)
{
    char *at = line;
    mapping->start = strtoull(at, &at, 16);
    mapping->end = strtoull(at + 1, &at, 16);
    mapping->protect = (at[1] == 'r' ? PROT_READ : 0) | (at[2] == 'w' ? PROT_WRITE : 0) |
                       (at[3] == 'x' ? PROT_EXEC : 0);
    mapping->is_shared = at[4] == 's';
    mapping->offset = strtoull(at + 5, &at, 16);
    mapping->major = (unsigned) strtoul(at, &at, 16);
    mapping->minor = (unsigned) strtoul(at + 1, &at, 16);
    mapping->inode = strtoull(at, &at, 10);
    mapping->path = at + strspn(at, " ");
    decode_path(mapping->path);
}

static bool overlaps(const struct mapping *mapping, uint64_t from, uint64_t to)
{
    return mapping->start < to && from < mapping->end;
}

/* Is it still the file that was mapped, and will another sandbox have the same? A read-only file
 * system is that of the template, which all its sandboxes share; /usr/lib/glovebox is a tmpfs of
 * each fork server. */
static void look_at_file(struct look *look, const char *path, uint64_t inode)
{
    struct statfs system;
    if (look->last_path && strcmp(look->last_path, path) == 0)
        return;
    look->last_path = path;
    look->last_name = 0;
    look->last_is_there = stat(path, &look->last) == 0 && look->last.st_ino == inode;
    look->last_is_constant = look->last_is_there && S_ISREG(look->last.st_mode) &&
                             statfs(path, &system) == 0 && (system.f_flags & ST_RDONLY) &&
                             !text_begins(path, our_place);
}

static int name_file(struct look *look, struct image_area *area, error *err)
{
    struct space *space = look->space;
    if (look->last_name == 0) {
        size_t size = strlen(look->last_path) + 1;
        if (size > IMAGE_NAMES_MAX - space->head.names)
            return fail(err, ERR_UNAVAILABLE, "the names of mapped files are too long");
        memcpy(space->names + space->head.names, look->last_path, size);
        look->last_name = (uint32_t) space->head.names;
        space->head.names += size;
    }
    area->name = look->last_name;
    area->size = (uint64_t) look->last.st_size;
    if (area->kind == IMAGE_FILE) {
        area->device = look->last.st_dev;
        area->inode = look->last.st_ino;
        area->changed_ns =
            (int64_t) look->last.st_ctim.tv_sec * 1000000000 + look->last.st_ctim.tv_nsec;
    }
    return 0;
}

/* Pages of a mapping that lie after the end of its file do not exist. */
static uint64_t end_of_file(const struct look *look, const struct mapping *mapping)
{
    const uint64_t page = look->space->head.page;
    uint64_t is = 0; /* pages that exist */
    uint64_t is_not = (mapping->end - mapping->start) / page;
    char byte;
    while (is < is_not) {
        uint64_t middle = is + (is_not - is) / 2;
        if (pread(look->memory, &byte, 1, (off_t) (mapping->start + middle * page)) == 1)
            is = middle + 1;
        else
            is_not = middle;
    }
    return mapping->start + is * page;
}

static int read_memory(const struct look *look, uint64_t from, char *into, size_t size, error *err)
{
    while (size > 0) {
        ssize_t got = pread(look->memory, into, size, (off_t) from);
        if (got <= 0)
            return got < 0 ? fail_os(err, "read shared memory")
                           : fail(err, ERR_UNAVAILABLE, "a mapped file became shorter");
        from += (uint64_t) got;
        into += got;
        size -= (size_t) got;
    }
    return 0;
}

/* After fork(2), shared memory and files are still shared with the original, which may change them
 * before they are written: this process maps a copy in their place. */
static int hold_still(const struct look *look, const struct mapping *mapping, uint64_t end,
                      error *err)
{
    size_t size = end - mapping->start;
    char *copy = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (copy == MAP_FAILED)
        return fail_os(err, "copy memory that others may change");
    if (read_memory(look, mapping->start, copy, size, err) < 0)
        return -1;
    if (mprotect(copy, size, mapping->protect) < 0 ||
        mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *) mapping->start) ==
            MAP_FAILED)
        return fail_os(err, "copy memory that others may change");
    return 0;
}

static int take_whole(struct look *look, const struct mapping *mapping, error *err)
{
    uint64_t end = end_of_file(look, mapping);
    look->space->whole[look->space->head.areas] = end - mapping->start;
    return end == mapping->start || text_begins(mapping->path, our_place)
               ? 0
               : hold_still(look, mapping, end, err);
}

static uint32_t object_of(struct space *space, const struct mapping *mapping)
{
    uint64_t device = makedev(mapping->major, mapping->minor);
    unsigned i = 0;
    while (i < space->objects_count &&
           (space->objects[i].device != device || space->objects[i].inode != mapping->inode))
        i++;
    if (i == IMAGE_OBJECTS_MAX)
        return i;
    if (i == space->objects_count) {
        space->objects[i].device = device;
        space->objects[i].inode = mapping->inode;
        space->objects_count++;
    }
    return i;
}

/* Shared memory without a file: the restored process gets its own copy. */
static int add_object(struct look *look, const struct mapping *mapping, struct image_area *area,
                      error *err)
{
    look->shared += mapping->end - mapping->start;
    area->kind = IMAGE_SHARED;
    area->object = object_of(look->space, mapping);
    area->offset = mapping->offset;
    uint64_t end = end_of_file(look, mapping);
    area->size = mapping->offset + (end - mapping->start);
    if (area->object == IMAGE_OBJECTS_MAX || look->shared > SHARED_MAX)
        return fail(err, ERR_UNAVAILABLE, "more than 1 GiB or %d areas of memory are shared",
                    IMAGE_OBJECTS_MAX);
    return take_whole(look, mapping, err);
}

static int add_shared(struct look *look, const struct mapping *mapping, struct image_area *area,
                      error *err)
{
    static const char gone[] = " (deleted)";
    size_t size = strlen(mapping->path);
    bool is_gone =
        size > sizeof gone - 1 && strcmp(mapping->path + size - (sizeof gone - 1), gone) == 0;
    if (mapping->path[0] == '\0' || text_begins(mapping->path, "[anon_shmem:") || is_gone)
        return add_object(look, mapping, area, err);
    look_at_file(look, mapping->path, mapping->inode);
    if (!look->last_is_there || !S_ISREG(look->last.st_mode))
        return fail(err, ERR_UNAVAILABLE, "memory of '%s' is shared", mapping->path);
    area->kind = IMAGE_OPEN;
    area->offset = mapping->offset;
    return name_file(look, area, err);
}

static int add_private(struct look *look, const struct mapping *mapping, struct image_area *area,
                       error *err)
{
    bool has_stack = look->place->stack >= mapping->start && look->place->stack < mapping->end;
    area->kind = has_stack ? IMAGE_STACK : IMAGE_MEMORY;
    if (mapping->path[0] == '[' && !text_begins(mapping->path, "[anon:") &&
        !text_begins(mapping->path, "[heap]") && !text_begins(mapping->path, "[stack"))
        return fail(err, ERR_UNAVAILABLE, "a special mapping, %s, cannot be copied", mapping->path);
    if (mapping->path[0] != '/' || strcmp(mapping->path, "/dev/zero") == 0)
        return 0;
    look_at_file(look, mapping->path, mapping->inode);
    if (!look->last_is_constant)
        return take_whole(look, mapping, err);
    area->kind = IMAGE_FILE;
    area->offset = mapping->offset;
    return name_file(look, area, err);
}

/* True for what the kernel maps in every process, and for the data of this image. */
static bool is_left_out(struct look *look, const struct mapping *mapping)
{
    struct space *space = look->space;
    for (unsigned i = 0; i < IMAGE_SPECIALS; i++)
        if (strcmp(mapping->path, image_specials[i]) == 0) {
            space->head.specials[i].start = mapping->start;
            space->head.specials[i].end = mapping->end;
            return true;
        }
    bool is_closed_break = overlaps(mapping, IMAGE_RESTORE_FROM, IMAGE_RESTORE_TO) &&
                           mapping->protect == PROT_NONE && mapping->path[0] == '\0';
    return is_closed_break || mapping->start >> 63 ||
           overlaps(mapping, (uintptr_t) space, (uintptr_t) space + sizeof *space);
}

static int add_mapping(struct look *look, const struct mapping *mapping, error *err)
{
    struct space *space = look->space;
    if (is_left_out(look, mapping))
        return 0;
    if (space->head.areas == IMAGE_AREAS_MAX)
        return fail(err, ERR_UNAVAILABLE, "there are more than %d areas of memory",
                    IMAGE_AREAS_MAX);
    if (overlaps(mapping, IMAGE_RESTORE_FROM, IMAGE_RESTORE_TO))
        return fail(err, ERR_UNAVAILABLE, "memory lies at the addresses of glovebox-restore");
    if (mapping->end - mapping->start > SPACE_MAX)
        return fail(err, ERR_UNAVAILABLE, "more than 1 TiB of memory is reserved in one area");
    struct image_area *area = &space->areas[space->head.areas];
    *area = (struct image_area){ .start = mapping->start,
                                 .end = mapping->end,
                                 .protect = (uint16_t) mapping->protect };
    if ((mapping->is_shared ? add_shared : add_private)(look, mapping, area, err) < 0)
        return -1;
    space->head.areas++;
    return 0;
}

int space_look(struct space **ret_space, const struct place *place, error *err)
{
    /* MAP_SHARED, so that the kernel does not merge it with a neighbouring mapping. */
    struct space *space = mmap(NULL, sizeof *space, PROT_READ | PROT_WRITE,
                               MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (space == MAP_FAILED)
        return fail_os(err, "allocate memory for the list of areas");
    *ret_space = space;
    space->head = (struct image_head){ .magic = IMAGE_MAGIC,
                                       .version = IMAGE_VERSION,
                                       .machine = IMAGE_MACHINE,
                                       .page = (uint32_t) sysconf(_SC_PAGESIZE),
                                       .names = 1,
                                       .resume = (uintptr_t) place->resume,
                                       .stack = place->stack,
                                       .thread = place->thread };
    auto_fd memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (memory < 0)
        return fail_os(err, "open /proc/self/mem");
    struct look look = { .space = space, .place = place, .memory = memory };
    if (read_maps(space, err) < 0)
        return -1;
    for (char *rest = space->maps, *line; (line = strtok_r(rest, "\n", &rest));) {
        struct mapping mapping;
        read_mapping(line, &mapping);
        if (add_mapping(&look, &mapping, err) < 0)
            return -1;
    }
    return 0;
}
