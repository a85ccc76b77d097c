/* blobs.h - bytes that are stored by their SHA-256: artifacts and whole outputs.
 *
 * They are files in STATE/blobs, or in memory if the daemon is private. Each belongs to one owner
 * (accounts.h): equal bytes of two owners are two blobs, so that no tenant learns what another has.
 * A blob that is opened has the hash in its name: this daemon has made it, or has hashed it since
 * it started. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "ledger/sha256.h"

#include <sodium.h>
#include <stddef.h>
#include <stdint.h>
#include <uv.h>

enum { BLOBS_SYNC_MS = 1000 };

enum {
    BLOB_NAME_SIZE = 65,  /* 64 hex digits and NUL */
    BLOB_OWNER_SIZE = 17, /* 16 hex digits and NUL; "": the owner of the daemon */
};

struct blob_store;

/* Bounds for all tenants together. A blob counts in blocks of 4 KiB, at least one. Beyond the
 * bounds the tenant with most loses the blobs that it has not read for longest. */
struct blob_bounds {
    uint64_t bytes, count;
};

struct blob_usage {
    uint64_t bytes, count;
    uint64_t evicted, damaged; /* since the start */
};

/* Gives  *ret_store. `state` may be NULL: all blobs are in memory. */
int blobs_open(const char *state, const struct blob_bounds *bounds, struct blob_store **ret_store,
               error *err);
void blobs_bound(struct blob_store *store, const struct blob_bounds *bounds);
const struct blob_usage *blobs_usage(const struct blob_store *store);
void blobs_close(struct blob_store *store); /* after the loop */

/* From now on new blobs are synced to disk off the event loop, within BLOBS_SYNC_MS and the time
 * that the disk takes. A blob that could not be synced is removed. */
void blobs_sync_on(struct blob_store *store, uv_loop_t *loop);
void blobs_leave(struct blob_store *store); /* before the loop ends: closes the timer */

/* A blob that is being written. blob_begin() starts it; blob_keep() or blob_abandon() ends it, or
 * blob_name() if it is known already. Meanwhile a job of disk_worker.h writes it. */
struct blob_writer {
    struct blob_store *store;
    char owner[BLOB_OWNER_SIZE], payer[BLOB_OWNER_SIZE];
    int fd;            /* -1: all bytes are in `held`, or it was named */
    struct bytes held; /* not written yet */
    uint64_t size, inode;
    struct sha256 hash;
    size_t head_size;
    unsigned char head[16]; /* the first bytes, for the MIME type */
};

/* A file without a name for another purpose, which is not counted; the caller closes it. */
int blobs_scratch(struct blob_store *store, error *err);

/* Whose it is, and whose share it counts in: they differ while it is withheld. */
struct blob_owner {
    const char *name, *payer;
};

void blob_begin(struct blob_store *store, const struct blob_owner *owner,
                struct blob_writer *writer);
int blob_add(struct blob_writer *writer, const void *data, size_t size, error *err);

/* Gives  its name in hex. Returns BLOB_KNOWN if this owner has the same bytes already: it is
 * stored. Its MIME type is kept with it. */
enum { BLOB_KNOWN = 1 };
int blob_name(struct blob_writer *writer, const char *mime, char ret_name[BLOB_NAME_SIZE]);

/* Off the event loop: writes `held` into the file, which is named `name` if that is all of it. */
int blob_write(struct blob_writer *writer, const char *name, error *err);

/* Returns as blob_name(): the same bytes may have come meanwhile. */
int blob_keep(struct blob_writer *writer, const char *mime, const char *name, error *err);
void blob_abandon(struct blob_writer *writer);

/* Gives a blob to another owner. Does nothing if it does not exist any more. */
int blob_hand_over(struct blob_store *store, const char *from, const char *name, const char *to,
                   error *err);
void blob_forget(struct blob_store *store, const char *owner, const char *name);

struct blob_view {
    int fd; /* closed by the code that opened it */
    uint64_t size;
    const char *mime; /* valid until the store is used again */
};

/* A blob that an earlier daemon stored is hashed before it is opened: off the event loop, once.
 * Returns 0 if that is not needed (or there is no such blob: blob_open() fails), 1 if `done` will
 * be called. */
struct blob_check;
int blob_check(struct blob_store *store, const char *owner, const char *name,
               struct blob_check **ret_check, error *err);
void blob_check_tell(struct blob_check *check, void (*done)(void *user, const error *why),
                     void *user); /* done NULL: forget the waiter */

/* Opens a blob for reading, after blob_check(). Fails  ERR_NOT_FOUND  also if it belongs to another
 * owner, or is damaged. */
int blob_open(struct blob_store *store, const char *owner, const char *name,
              struct blob_view *ret_view, error *err);

/* The MIME type of a file, by the ending of its name, else by its first bytes;
 * "application/octet-stream". */
const char *mime_of(const char *path, const unsigned char *head, size_t head_size);
