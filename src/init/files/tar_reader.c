/* tar_reader.c - a tar is a sequence of members: a header, its contents, padding to 512 bytes. Two
 * empty blocks end it. */
#include "init/files/tar_reader.h"

#include <string.h>

/* Fields of a header: offset and size. */
enum {
    NAME = 0,
    NAME_SIZE = 100,
    MODE = 100,
    MODE_SIZE = 8,
    SIZE = 124,
    SIZE_SIZE = 12,
    MTIME = 136,
    MTIME_SIZE = 12,
    CHECKSUM = 148,
    CHECKSUM_SIZE = 8,
    TYPE = 156,
    LINK = 157,
    LINK_SIZE = 100,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_SIZE = 155,
};

static const uint64_t size_max = UINT64_C(1) << 50;

void tar_reader_open(struct tar_reader *reader)
{
    reader->state = TAR_IN_HEADER;
    reader->has_path = reader->has_link = reader->has_size = false;
    reader->empty_blocks = reader->have = 0;
    reader->left = reader->rest = 0;
    reader->padding = 0;
}

/* Reads an octal number that ends with blanks or NUL; or, with the first bit set, a big-endian
 * number (GNU). */
static int read_number(const unsigned char *field, unsigned size, uint64_t *ret_number)
{
    uint64_t number = 0;
    if (field[0] & 0x80) {
        number = field[0] & 0x7f;
        for (unsigned i = 1; i < size; i++) {
            if (number >> 55)
                return -1;
            number = number << 8 | field[i];
        }
        *ret_number = number;
        return 0;
    }
    unsigned i = 0;
    while (i < size && field[i] == ' ')
        i++;
    for (; i < size && field[i] >= '0' && field[i] <= '7'; i++) {
        if (number >> 60)
            return -1;
        number = number << 3 | (uint64_t) (field[i] - '0');
    }
    for (; i < size; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return -1;
    *ret_number = number;
    return 0;
}

static bool checksum_holds(const unsigned char *header)
{
    uint64_t said, sum = 0;
    int64_t as_signed = 0; /* as old programs computed it */
    for (unsigned i = 0; i < TAR_BLOCK; i++) {
        bool is_sum = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_SIZE;
        sum += is_sum ? ' ' : header[i];
        as_signed += is_sum ? ' ' : (signed char) header[i];
    }
    return read_number(header + CHECKSUM, CHECKSUM_SIZE, &said) == 0 &&
           (said == sum || (as_signed >= 0 && said == (uint64_t) as_signed));
}

/* Removes a leading "/" or "./" and a last "/"; refuses other empty parts, "." and "..". */
static int clean_path(char *path, error *err)
{
    size_t length = strlen(path);
    char *from = path;
    for (;;) {
        if (*from == '/')
            from++;
        else if (from[0] == '.' && (from[1] == '/' || from[1] == '\0'))
            from += from[1] == '/' ? 2 : 1;
        else
            break;
    }
    length -= (size_t) (from - path);
    memmove(path, from, length + 1);
    while (length > 0 && path[length - 1] == '/')
        path[--length] = '\0';
    for (const char *part = path; *part;) {
        size_t size = strcspn(part, "/");
        if (size == 0 || size > 255 || (size == 1 && *part == '.') ||
            (size == 2 && strncmp(part, "..", 2) == 0))
            return fail(err, ERR_BAD_REQUEST,
                        "the tar has a member '%.100s', which is not a path "
                        "below the folder",
                        path);
        part += size;
        part += *part == '/';
    }
    return 0;
}

static void copy_field(char *to, const unsigned char *field, size_t size)
{
    size_t length = strnlen((const char *) field, size);
    memcpy(to, field, length);
    to[length] = '\0';
}

static enum tar_type type_of(unsigned char type)
{
    switch (type) {
    case '\0':
    case '0':
    case '7':
    case TAR_HOLLOW:
        return TAR_FILE;
    case '1':
        return TAR_HARD_LINK;
    case '2':
        return TAR_LINK;
    case '5':
        return TAR_FOLDER;
    default:
        return TAR_SPECIAL;
    }
}

static int read_member(struct tar_reader *reader, uint64_t size, const struct tar_user *user,
                       error *err)
{
    struct tar_member *member = &reader->member;
    const unsigned char *header = reader->header;
    uint64_t mode = 0, mtime = 0;
    if (read_number(header + MODE, MODE_SIZE, &mode) < 0 ||
        read_number(header + MTIME, MTIME_SIZE, &mtime) < 0)
        return fail(err, ERR_BAD_REQUEST, "the tar has a number that is none");
    if (!reader->has_path) {
        bool has_prefix = memcmp(header + MAGIC, "ustar\0", 6) == 0 && header[PREFIX];
        size_t length = 0;
        if (has_prefix) {
            copy_field(member->path, header + PREFIX, PREFIX_SIZE);
            length = strlen(member->path);
            member->path[length++] = '/';
        }
        copy_field(member->path + length, header + NAME, NAME_SIZE);
    }
    if (!reader->has_link)
        copy_field(member->link, header + LINK, LINK_SIZE);
    member->type = type_of(header[TYPE]);
    size_t named = strlen(member->path);
    if (member->type == TAR_FILE && named > 0 && member->path[named - 1] == '/')
        member->type = TAR_FOLDER; /* how formats before ustar mark a folder */
    member->mode = (uint32_t) mode & 0777;
    member->mtime = mtime < (UINT64_C(1) << 40) ? (int64_t) mtime : 0;
    member->size = member->type == TAR_FILE ? size : 0;
    reader->has_path = reader->has_link = reader->has_size = false;
    if (clean_path(member->path, err) < 0 ||
        (member->type == TAR_HARD_LINK && clean_path(member->link, err) < 0))
        return -1;
    if (member->path[0] == '\0' && member->type != TAR_FOLDER)
        return fail(err, ERR_BAD_REQUEST, "the tar has a member without a name");
    bool has_holes = header[TYPE] == TAR_HOLLOW;
    reader->rest = has_holes ? member->size : 0;
    reader->left =
        member->type == TAR_SPECIAL || (member->type == TAR_FILE && !has_holes) ? size : 0;
    reader->padding = (uint32_t) (-reader->left & (TAR_BLOCK - 1));
    reader->state = TAR_IN_BYTES;
    return user->member(user->context, member, err);
}

static int take_part(struct tar_reader *reader, uint64_t size, const struct tar_user *user,
                     error *err)
{
    uint64_t hole;
    if (reader->header[TYPE] != TAR_PART ||
        read_number(reader->header + MTIME, MTIME_SIZE, &hole) < 0 || hole > reader->rest ||
        size > reader->rest - hole)
        return fail(err, ERR_BAD_REQUEST, "the tar has no part that fits the holes of '%.100s'",
                    reader->member.path);
    reader->rest -= hole + size;
    reader->left = size;
    reader->padding = (uint32_t) (-size & (TAR_BLOCK - 1));
    reader->state = TAR_IN_BYTES;
    return hole > 0 ? user->hole(user->context, hole, err) : 0;
}

static bool is_empty(const unsigned char *block)
{
    for (unsigned i = 0; i < TAR_BLOCK; i++)
        if (block[i] != 0)
            return false;
    return true;
}

static int take_header(struct tar_reader *reader, const struct tar_user *user, error *err)
{
    uint64_t size;
    reader->have = 0;
    if (reader->rest == 0 && is_empty(reader->header)) {
        if (++reader->empty_blocks == 2)
            reader->state = TAR_AT_END;
        return 0;
    }
    reader->empty_blocks = 0;
    if (!checksum_holds(reader->header) || read_number(reader->header + SIZE, SIZE_SIZE, &size) < 0)
        return fail(err, ERR_BAD_REQUEST, "this is not a tar (send it uncompressed)");
    if (reader->rest > 0)
        return take_part(reader, size, user, err);
    char type = (char) reader->header[TYPE];
    bool is_extension = type == 'x' || type == 'g' || type == 'L' || type == 'K';
    if (reader->has_size && !is_extension)
        size = reader->next_size;
    if (size > size_max)
        return fail(err, ERR_BAD_REQUEST, "the tar has a member of %llu bytes",
                    (unsigned long long) size);
    if (type == TAR_HOLLOW && !user->hole)
        return fail(err, ERR_BAD_REQUEST, "the tar has a sparse file; write it without --sparse");
    if (!is_extension)
        return read_member(reader, size, user, err);
    if (size > TAR_EXTENSION_MAX)
        return fail(err, ERR_BAD_REQUEST, "the tar has an extension of %llu bytes, %d are taken",
                    (unsigned long long) size, TAR_EXTENSION_MAX);
    reader->extension_type = type;
    reader->extension_size = 0;
    reader->left = size;
    reader->padding = (uint32_t) (-size & (TAR_BLOCK - 1));
    reader->state = TAR_IN_EXTENSION;
    return 0;
}

static int keep_path(char *to, bool *ret_has, const char *text, size_t size, error *err)
{
    while (size > 0 && text[size - 1] == '\0')
        size--;
    if (size == 0 || size > AGENT_PATH_MAX || memchr(text, '\0', size))
        return fail(err, ERR_BAD_REQUEST, "the tar has a name of %zu bytes, or with a NUL in it",
                    size);
    memcpy(to, text, size);
    to[size] = '\0';
    *ret_has = true;
    return 0;
}

/* "<length> <key>=<value>\n" */
static int read_record(struct tar_reader *reader, const char *record, size_t size, error *err)
{
    const char *equals = memchr(record, '=', size);
    if (!equals)
        return fail(err, ERR_BAD_REQUEST, "the tar has a broken extension");
    size_t key = (size_t) (equals - record);
    const char *value = equals + 1;
    size_t length = size - key - 1;
    if (key == 4 && memcmp(record, "path", 4) == 0)
        return keep_path(reader->member.path, &reader->has_path, value, length, err);
    if (key == 8 && memcmp(record, "linkpath", 8) == 0)
        return keep_path(reader->member.link, &reader->has_link, value, length, err);
    if (key != 4 || memcmp(record, "size", 4) != 0)
        return 0;
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (value[i] < '0' || value[i] > '9' || number > size_max)
            return fail(err, ERR_BAD_REQUEST, "the tar has a number that is none");
        number = number * 10 + (uint64_t) (value[i] - '0');
    }
    reader->has_size = true;
    reader->next_size = number;
    return 0;
}

static int read_records(struct tar_reader *reader, error *err)
{
    const char *at = reader->extension;
    const char *end = at + reader->extension_size;
    while (at < end && *at != '\0') {
        size_t length = 0;
        const char *digit = at;
        for (; digit < end && *digit >= '0' && *digit <= '9' && length < TAR_EXTENSION_MAX; digit++)
            length = length * 10 + (size_t) (*digit - '0');
        size_t said = (size_t) (digit - at) + 1; /* the number and a blank */
        if (digit == at || digit == end || *digit != ' ' || length <= said ||
            length > (size_t) (end - at) || at[length - 1] != '\n')
            return fail(err, ERR_BAD_REQUEST, "the tar has a broken extension");
        if (read_record(reader, at + said, length - said - 1, err) < 0)
            return -1;
        at += length;
    }
    return 0;
}

static int extension_ends(struct tar_reader *reader, error *err)
{
    reader->state = TAR_IN_HEADER;
    switch (reader->extension_type) {
    case 'L':
        return keep_path(reader->member.path, &reader->has_path, reader->extension,
                         reader->extension_size, err);
    case 'K':
        return keep_path(reader->member.link, &reader->has_link, reader->extension,
                         reader->extension_size, err);
    case 'x':
        return read_records(reader, err);
    default:
        return 0; /* 'g', global: not used */
    }
}

/* Takes the bytes of a member or an extension, then the padding. */
/* NOLINTNEXTLINE(readability-function-size): each parameter is a fact of its own */
static size_t take_bytes(struct tar_reader *reader, const unsigned char *bytes, size_t size,
                         const struct tar_user *user, int *ret_failed, error *err)
{
    size_t part = reader->left < size ? (size_t) reader->left : size;
    if (part > 0 && reader->state == TAR_IN_EXTENSION) {
        memcpy(reader->extension + reader->extension_size, bytes, part);
        reader->extension_size += (uint32_t) part;
    } else if (part > 0 && reader->member.type == TAR_FILE) {
        *ret_failed = user->bytes(user->context, bytes, part, err);
    }
    reader->left -= part;
    size_t skipped = reader->left > 0                ? 0
                     : reader->padding < size - part ? reader->padding
                                                     : size - part;
    reader->padding -= (uint32_t) skipped;
    return part + skipped;
}

static int part_ends(struct tar_reader *reader, const struct tar_user *user, error *err)
{
    if (reader->state == TAR_IN_EXTENSION)
        return extension_ends(reader, err);
    reader->state = TAR_IN_HEADER;
    return reader->rest > 0 ? 0 : user->member_end(user->context, &reader->member, err);
}

int tar_reader_take(struct tar_reader *reader, const void *bytes, size_t size,
                    const struct tar_user *user, error *err)
{
    const unsigned char *at = bytes;
    while (size > 0 && reader->state != TAR_AT_END) { /* what follows the end is padding */
        size_t taken;
        int failed = 0;
        if (reader->state == TAR_IN_HEADER) {
            taken = TAR_BLOCK - reader->have < size ? TAR_BLOCK - reader->have : size;
            memcpy(reader->header + reader->have, at, taken);
            reader->have += (unsigned) taken;
            if (reader->have == TAR_BLOCK)
                failed = take_header(reader, user, err);
        } else {
            taken = take_bytes(reader, at, size, user, &failed, err);
        }
        if (failed < 0)
            return -1;
        at += taken;
        size -= taken;
        bool is_whole = reader->state == TAR_IN_EXTENSION || reader->state == TAR_IN_BYTES;
        if (is_whole && reader->left == 0 && reader->padding == 0 &&
            part_ends(reader, user, err) < 0)
            return -1;
    }
    return 0;
}

int tar_reader_end(const struct tar_reader *reader, error *err)
{
    bool is_clean = reader->state == TAR_AT_END ||
                    (reader->state == TAR_IN_HEADER && reader->have == 0 && reader->rest == 0);
    return is_clean ? 0 : fail(err, ERR_BAD_REQUEST, "the tar ends in the middle of a member");
}
