/* tar_reader.h - parses a tar as its bytes come: ustar, with the extensions of pax and of GNU tar.
 * The tar is hostile input: every number is bounded, every name must be a path below a folder. No
 * system call: tests and a fuzzer run it as it is.
 *
 * A file with holes, only between the inits of glovebox: a header HOLLOW with the size of the file,
 * then parts in order until it is whole. Each has a header PART with the bytes of its data, which
 * follow, and in place of the time the bytes of the hole before them. */
#pragma once

#include "base/error.h"
#include "contract/agent.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TAR_BLOCK = 512, TAR_EXTENSION_MAX = 65536, TAR_HOLLOW = 'S', TAR_PART = 'M' };

enum tar_type { TAR_FILE, TAR_FOLDER, TAR_LINK, TAR_HARD_LINK, TAR_SPECIAL };

struct tar_member {
    enum tar_type type;
    uint32_t mode;                 /* permission bits */
    uint64_t size;                 /* of the contents: 0 unless it is a file */
    int64_t mtime;                 /* seconds since 1970 */
    char path[AGENT_PATH_MAX + 1]; /* without leading "/" or "./"; no part is empty, "." or ".." */
    char link[AGENT_PATH_MAX + 1]; /* unchanged; of a hard link: a path as above */
};

/* The receiver of the members. Each returns 0, or -1 with *err, which ends the reading. */
struct tar_user {
    void *context;
    int (*member)(void *context, const struct tar_member *member, error *err);
    int (*bytes)(void *context, const void *bytes, size_t size, error *err);
    int (*member_end)(void *context, const struct tar_member *member, error *err);
    /* The next bytes are zeros. NULL: a file with holes is refused. */
    int (*hole)(void *context, uint64_t size, error *err);
};

struct tar_reader {
    enum { TAR_IN_HEADER, TAR_IN_EXTENSION, TAR_IN_BYTES, TAR_AT_END } state;
    bool has_path, has_link, has_size; /* given by an extension, for the next member */
    char extension_type;
    unsigned empty_blocks;
    unsigned have;    /* bytes of the header */
    uint64_t left;    /* of the member, its part, or extension */
    uint64_t rest;    /* of a file with holes: what later parts bring */
    uint32_t padding; /* after it */
    uint32_t extension_size;
    uint64_t next_size;
    unsigned char header[TAR_BLOCK];
    char extension[TAR_EXTENSION_MAX + 1];
    struct tar_member member;
};

void tar_reader_open(struct tar_reader *reader);

/* Fails  ERR_BAD_REQUEST  it is no tar, or is not supported; the text names the member. */
int tar_reader_take(struct tar_reader *reader, const void *bytes, size_t size,
                    const struct tar_user *user, error *err);

/* No more bytes follow. Fails  ERR_BAD_REQUEST  in the middle of a member. */
int tar_reader_end(const struct tar_reader *reader, error *err);
