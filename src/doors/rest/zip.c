/* zip.c - the records of PKWARE's APPNOTE 6.3.10, sections 4.3.7 to 4.3.16, little-endian. */
#include "doors/rest/zip.h"

#include <string.h>

enum {
    LOCAL_SIZE = 30,
    LOCAL64_SIZE = 20, /* extra field with both sizes */
    DESCRIPTOR64_SIZE = 24,
    ENTRY_SIZE = 46,
    ENTRY64_SIZE = 28, /* extra field with both sizes and the offset */
    END_SIZE = 22,
    END64_SIZE = 56 + 20, /* and its locator */
    VERSION64 = 45,
    BY_UNIX = 3 << 8,
    FLAGS = 1 << 3 | 1 << 11, /* checksums follow; names are UTF-8 */
    DATE_1980 = 1 << 5 | 1,   /* a fixed date */
};

static const uint32_t file_mode = UINT32_C(0100644) << 16;
static const uint64_t max_32 = UINT32_MAX;

static void put(struct bytes *out, uint64_t value, unsigned size)
{
    unsigned char bytes[8];
    for (unsigned i = 0; i < size; i++)
        bytes[i] = (unsigned char) (value >> (8 * i));
    bytes_add(out, bytes, size);
}

static uint64_t or_max_32(uint64_t value)
{
    return value < max_32 ? value : max_32;
}

/* True if a row of the directory needs the 64-bit fields. A local header always has them, since it
 * is written before the size is known. */
static bool is_long(uint64_t size, uint64_t offset)
{
    return size >= max_32 || offset >= max_32;
}

bool zip_name_is_safe(const char *name)
{
    if (*name == '\0' || *name == '/' || strlen(name) > UINT16_MAX || strchr(name, '\\'))
        return false;
    for (const char *part = name; *part;) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && *part == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (*part == '/' && *++part == '\0')
            return false;
    }
    return true;
}

static void account(struct zip *zip, const struct bytes *out, size_t before)
{
    zip->offset += out->size - before;
}

void zip_file_begin(struct zip *zip, const char *name, struct bytes *out)
{
    size_t before = out->size;
    zip->file_from = zip->offset;
    zip->file_size = 0;
    zip->sum = 0;
    put(out, 0x04034b50, 4);
    put(out, VERSION64, 2);
    put(out, FLAGS, 2);
    put(out, 0, 2); /* stored */
    put(out, 0, 2);
    put(out, DATE_1980, 2);
    put(out, 0, 4);
    put(out, max_32, 4); /* sizes: in the extra field, where 0 means that they follow */
    put(out, max_32, 4);
    put(out, strlen(name), 2);
    put(out, LOCAL64_SIZE, 2);
    bytes_add_text(out, name);
    put(out, 1, 2);
    put(out, 16, 2);
    put(out, 0, 8);
    put(out, 0, 8);
    account(zip, out, before);
}

/* CRC-32 as of ISO 3309. */
static uint32_t sum_add(uint32_t sum, const unsigned char *data, size_t size)
{
    static uint32_t table[256];
    if (table[1] == 0)
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t value = i;
            for (int bit = 0; bit < 8; bit++)
                value = value & 1 ? value >> 1 ^ UINT32_C(0xEDB88320) : value >> 1;
            table[i] = value;
        }
    sum = ~sum;
    for (size_t i = 0; i < size; i++)
        sum = sum >> 8 ^ table[(sum ^ data[i]) & 0xFF];
    return ~sum;
}

void zip_count(struct zip *zip, const void *data, size_t size)
{
    zip->sum = sum_add(zip->sum, data, size);
    zip->file_size += size;
    zip->offset += size;
}

static void add_entry(struct zip *zip, const char *name)
{
    struct bytes *out = &zip->directory;
    bool has_more = is_long(zip->file_size, zip->file_from);
    put(out, 0x02014b50, 4);
    put(out, BY_UNIX | VERSION64, 2);
    put(out, VERSION64, 2);
    put(out, FLAGS, 2);
    put(out, 0, 2);
    put(out, 0, 2);
    put(out, DATE_1980, 2);
    put(out, zip->sum, 4);
    put(out, has_more ? max_32 : zip->file_size, 4);
    put(out, has_more ? max_32 : zip->file_size, 4);
    put(out, strlen(name), 2);
    put(out, has_more ? ENTRY64_SIZE : 0, 2);
    put(out, 0, 2); /* comment */
    put(out, 0, 2); /* disk */
    put(out, 0, 2);
    put(out, file_mode, 4);
    put(out, has_more ? max_32 : zip->file_from, 4);
    bytes_add_text(out, name);
    if (!has_more)
        return;
    put(out, 1, 2);
    put(out, ENTRY64_SIZE - 4, 2);
    put(out, zip->file_size, 8);
    put(out, zip->file_size, 8);
    put(out, zip->file_from, 8);
}

void zip_file_end(struct zip *zip, const char *name, struct bytes *out)
{
    size_t before = out->size;
    put(out, 0x08074b50, 4);
    put(out, zip->sum, 4);
    put(out, zip->file_size, 8); /* long, as the local header's extra field says */
    put(out, zip->file_size, 8);
    account(zip, out, before);
    add_entry(zip, name);
    zip->files++;
}

/* True if the end needs the 64-bit fields. */
static bool end_is_long(uint64_t offset, uint64_t directory, uint64_t files)
{
    return offset >= max_32 || directory >= max_32 || files >= UINT16_MAX;
}

static void put_long_end(const struct zip *zip, struct bytes *out)
{
    uint64_t end = zip->offset + zip->directory.size;
    put(out, 0x06064b50, 4);
    put(out, 44, 8);
    put(out, BY_UNIX | VERSION64, 2);
    put(out, VERSION64, 2);
    put(out, 0, 8); /* disks */
    put(out, zip->files, 8);
    put(out, zip->files, 8);
    put(out, zip->directory.size, 8);
    put(out, zip->offset, 8);
    put(out, 0x07064b50, 4);
    put(out, 0, 4);
    put(out, end, 8);
    put(out, 1, 4);
}

void zip_end(struct zip *zip, struct bytes *out)
{
    uint64_t files = zip->files < UINT16_MAX ? zip->files : UINT16_MAX;
    bytes_add(out, zip->directory.data, zip->directory.size);
    out->failed |= zip->directory.failed;
    if (end_is_long(zip->offset, zip->directory.size, zip->files))
        put_long_end(zip, out);
    put(out, 0x06054b50, 4);
    put(out, 0, 4); /* disks */
    put(out, files, 2);
    put(out, files, 2);
    put(out, or_max_32(zip->directory.size), 4);
    put(out, or_max_32(zip->offset), 4);
    put(out, 0, 2);
}

void zip_done(struct zip *zip)
{
    bytes_done(&zip->directory);
}

void zip_size_add(struct zip_size *size, const char *name, uint64_t file_size)
{
    uint64_t length = strlen(name);
    size->directory += ENTRY_SIZE + length + (is_long(file_size, size->bytes) ? ENTRY64_SIZE : 0);
    size->bytes += LOCAL_SIZE + LOCAL64_SIZE + length + file_size + DESCRIPTOR64_SIZE;
    size->files++;
}

uint64_t zip_size_end(const struct zip_size *size)
{
    return size->bytes + size->directory + END_SIZE +
           (end_is_long(size->bytes, size->directory, size->files) ? END64_SIZE : 0);
}
