/* tar_fuzz.c - any bytes as a tar, in pieces whose size the first byte says: no member's path leads
 * out of the folder, no member is larger than it said, a file with holes is exactly as large, and
 * the reader keeps nothing beyond its bounds. */
#include "init/files/tar_reader.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t left;

static void check_path(const char *path)
{
    assert(path[0] != '/' && strlen(path) <= AGENT_PATH_MAX);
    for (const char *part = path; *part;) {
        size_t length = strcspn(part, "/");
        assert(length > 0 && length <= 255);
        assert(!(length == 1 && part[0] == '.') && !(length == 2 && strncmp(part, "..", 2) == 0));
        part += length;
        if (*part == '/')
            assert(*++part != '\0');
    }
}

static int member(void *context, const struct tar_member *found, error *err)
{
    (void) context;
    (void) err;
    check_path(found->path);
    assert(found->path[0] || found->type == TAR_FOLDER);
    if (found->type == TAR_HARD_LINK)
        check_path(found->link);
    assert(found->mode <= 0777 && (found->type == TAR_FILE || found->size == 0));
    left = found->size;
    return 0;
}

static int bytes(void *context, const void *content, size_t size, error *err)
{
    (void) context;
    (void) content;
    (void) err;
    assert(size > 0 && size <= left);
    left -= size;
    return 0;
}

static int member_end(void *context, const struct tar_member *found, error *err)
{
    (void) context;
    (void) found;
    (void) err;
    assert(left == 0);
    return 0;
}

static int hole(void *context, uint64_t size, error *err)
{
    (void) context;
    (void) err;
    assert(size > 0 && size <= left);
    left -= size;
    return 0;
}

/* Holes are taken if the first byte is odd: of what another init wrote, and not of an upload. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct tar_reader reader;
    error err;
    if (size < 1)
        return 0;
    const struct tar_user user = { NULL, member, bytes, member_end, data[0] & 1 ? hole : NULL };
    size_t piece = data[0] ? data[0] * 8U : 4096;
    tar_reader_open(&reader);
    for (size_t at = 1; at < size; at += piece)
        if (tar_reader_take(&reader, data + at, size - at < piece ? size - at : piece, &user,
                            &err) < 0)
            return 0;
    (void) tar_reader_end(&reader, &err);
    return 0;
}
