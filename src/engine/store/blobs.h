/* blobs.h - bytes kept by their SHA-256: artifacts, and later whole outputs.
 *
 * They lie as files in STATE/blobs, or in sealed-off memory if that folder cannot be written (a
 * private daemon). Each belongs to one owner (accounts.h): the same bytes of two owners are two
 * blobs, so that no tenant learns what another one has. What is handed out has the hash of its
 * name: this daemon has made it, or has hashed it since it was started. */
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
    BLOB_NAME_SIZE = 65,  /* 64 hex digits and the end */
    BLOB_OWNER_SIZE = 17, /* 16 hex digits and the end; "": the owner of the daemon */
};

struct blob_store;

/* Both are for all tenants together. A blob counts as blocks of 4 KiB, one at least. What is too
 * much is taken from the tenant that has most, what it has not asked for the longest first. */
struct blob_bounds {
    uint64_t bytes, count;
};

struct blob_usage {
    uint64_t bytes, count;
    uint64_t evicted, damaged; /* since the start */
};

/* Gives  *ret_store. `state` may be NULL: everything stays in memory. */
int blobs_open(const char *state, const struct blob_bounds *bounds, struct blob_store **ret_store,
               error *err);
void blobs_bound(struct blob_store *store, const struct blob_bounds *bounds);
const struct blob_usage *blobs_usage(const struct blob_store *store);
void blobs_close(struct blob_store *store); /* after the loop */

/* From now on what is kept is brought to disk off the event loop, within BLOBS_SYNC_MS and the time
 * that the disk takes. What the disk has refused is no longer there. */
void blobs_sync_on(struct blob_store *store, uv_loop_t *loop);
void blobs_leave(struct blob_store *store); /* the loop ends: gives its timer back */

/* One blob while it comes in. blob_begin() starts it; blob_keep() or blob_abandon() ends it, or
 * blob_name() that knows it. In between a job of disk_worker.h writes it. */
struct blob_writer {
    struct blob_store *store;
    char owner[BLOB_OWNER_SIZE], payer[BLOB_OWNER_SIZE];
    int fd;            /* -1: all of it is still in `held`, or it has its name */
    struct bytes held; /* on its way to the disk */
    uint64_t size, inode;
    struct sha256 hash;
    size_t head_size;
    unsigned char head[16]; /* first bytes, for the magic numbers */
};

/* A file for something else, which has no name and is not counted; the caller's. */
int blobs_scratch(struct blob_store *store, error *err);

/* Whose it is, and in whose share it counts: another, if it is held until it may be handed over. */
struct blob_owner {
    const char *name, *payer;
};

void blob_begin(struct blob_store *store, const struct blob_owner *owner,
                struct blob_writer *writer);
int blob_add(struct blob_writer *writer, const void *data, size_t size, error *err);

/* Gives  its name in hex. Returns BLOB_KNOWN if this owner has the same bytes: it is kept. The MIME
 * type is remembered with it. */
enum { BLOB_KNOWN = 1 };
int blob_name(struct blob_writer *writer, const char *mime, char ret_name[BLOB_NAME_SIZE]);

/* Off the event loop: writes what is held into its file, which gets `name` if that is all of it. */
int blob_write(struct blob_writer *writer, const char *name, error *err);

/* Returns as blob_name() does: the same bytes may have come meanwhile. */
int blob_keep(struct blob_writer *writer, const char *mime, const char *name, error *err);
void blob_abandon(struct blob_writer *writer);

/* Makes a blob another owner's. One that is not there any more is nothing to hand over. */
int blob_hand_over(struct blob_store *store, const char *from, const char *name, const char *to,
                   error *err);
void blob_forget(struct blob_store *store, const char *owner, const char *name);

struct blob_view {
    int fd; /* closed by the code that opened it */
    uint64_t size;
    const char *mime; /* valid until the store is used again */
};

/* What an earlier daemon has kept is hashed before it is opened: off the event loop, once. Returns
 * 0 if that is not needed (or it is not there: blob_open() says so), 1 if `done` will be called. */
struct blob_check;
int blob_check(struct blob_store *store, const char *owner, const char *name,
               struct blob_check **ret_check, error *err);
void blob_check_tell(struct blob_check *check, void (*done)(void *user, const error *why),
                     void *user); /* done NULL: no waiter is left */

/* Opens a blob for reading, after blob_check(). Fails  ERR_NOT_FOUND  also for one that belongs to
 * another owner, or was found damaged. */
int blob_open(struct blob_store *store, const char *owner, const char *name,
              struct blob_view *ret_view, error *err);

/* The type of a file by its name's ending, else by its first bytes; "application/octet-stream". */
const char *mime_of(const char *path, const unsigned char *head, size_t head_size);
