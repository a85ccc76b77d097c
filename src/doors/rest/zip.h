/* zip.h - writes a zip archive of stored (uncompressed) files as a stream, in constant memory.
 *
 * The caller asks for the pieces in order: for each file zip_file_begin(), its bytes (each given to
 * zip_count() too), zip_file_end(); last zip_end(). The size of the archive is known before the
 * first byte: zip_size_add() for each file, zip_size_end(). The checksum of a file is not known
 * before its bytes have passed, so it is written after them (data descriptors). From 4 GiB or
 * 65,535 files on the fields of ZIP64 are used. */
#pragma once

#include "base/bytes.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zip {
    uint64_t offset; /* bytes of the archive so far */
    uint64_t files;
    struct bytes directory; /* one row for each file */
    uint64_t file_from, file_size;
    uint32_t sum; /* CRC-32 of the file so far */
};

/* True for a name that stays below the folder where the archive is unpacked, on every system. */
bool zip_name_is_safe(const char *name);

void zip_file_begin(struct zip *zip, const char *name, struct bytes *out);
void zip_count(struct zip *zip, const void *data, size_t size);
void zip_file_end(struct zip *zip, const char *name, struct bytes *out);
void zip_end(struct zip *zip, struct bytes *out);
void zip_done(struct zip *zip);

struct zip_size {
    uint64_t bytes, directory, files;
};

void zip_size_add(struct zip_size *size, const char *name, uint64_t file_size);
uint64_t zip_size_end(const struct zip_size *size);
