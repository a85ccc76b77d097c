/* blobs_internal.h - shared by blobs.c (stores and finds), blob_quota.c (bounds) and blob_disk.c
 * (syncs to disk, and checks what an earlier daemon left). */
#pragma once

#include "engine/store/blobs.h"
#include "engine/store/disk_worker.h"

#include "base/bytes.h"

enum { BLOB_BUCKETS = 4096 };

/* The name of its file: the hash, and after a dot the owner. */
enum { BLOB_FILE_SIZE = BLOB_NAME_SIZE + BLOB_OWNER_SIZE };

struct blob {
    char name[BLOB_NAME_SIZE];
    char owner[BLOB_OWNER_SIZE];
    uint64_t size;
    int fd;                   /* -1: it is in the folder */
    bool is_checked;          /* this daemon has hashed its bytes */
    uint64_t inode;           /* of its file: another file of that name must not be removed */
    const char *mime;         /* from the table */
    struct blob *same_bucket; /* or the next to be removed */
    struct blob_share *share;
    struct blob *older, *newer; /* in its share */
};

/* The blobs of one tenant, in the order of their last use. */
struct blob_share {
    char payer[BLOB_OWNER_SIZE];
    uint64_t bytes, count;
    struct blob *oldest, *newest;
    struct blob_share *next;
};

struct blob_store {
    int folder; /* -1: in memory */
    struct blob_bounds bounds;
    struct blob_usage usage;
    struct blob *buckets[BLOB_BUCKETS];
    struct blob_share *shares;

    uv_loop_t *loop; /* NULL: nothing is synced */
    uv_timer_t timer;
    uv_work_t sync;
    struct disk_job removal;
    struct bytes waiting, in_flight; /* names of files, BLOB_FILE_SIZE bytes each */
    struct blob *leaving, *removed;  /* files to remove soon; being removed, off the event loop */
    bool is_syncing;
    error sync_failure; /* of a sync of the folder */
};

void blob_file_name(const char *owner, const char *name, char ret_file[BLOB_FILE_SIZE]);

bool blob_name_is_valid(const char *name);
struct blob *blob_find(struct blob_store *store, const char *owner, const char *name);
void blob_remove(struct blob_store *store, struct blob *blob, bool from_disk);

/* Gives  a descriptor for the caller. Fails  ERR_NOT_FOUND  the file was removed, and with it the
 * blob. */
int blob_open_file(struct blob_store *store, struct blob *blob, error *err);

/* Fails  ERR_SYSTEM  no memory. */
int blob_share_join(struct blob_store *store, struct blob *blob, const char *payer, error *err);
void blob_share_leave(struct blob_store *store, struct blob *blob);
void blob_share_renew(struct blob *blob); /* after a use */

/* Removes blobs beyond the bounds, but not `fresh`. */
void blob_shares_hold(struct blob_store *store, const struct blob *fresh);

/* Syncs a blob to disk, soon and off the event loop. */
void blob_sync_soon(struct blob_store *store, const struct blob *blob);

/* Removes a blob and its file, soon and off the event loop; for a list, now. */
void blob_leave(struct blob_store *store, struct blob *blob);
void blobs_remove(const struct blob_store *store, struct blob **list);

/* Removes a blob whose bytes do not have its hash, and logs that. Fails  ERR_NOT_FOUND. */
int blob_damaged(struct blob_store *store, struct blob *blob, error *err);
