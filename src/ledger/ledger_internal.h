/* ledger_internal.h - shared by the files of the ledger: ledger.c writes records, ledger_end.c
 * finds their end, ledger_group.c signs what is on disk, ledger_key.c changes the key,
 * ledger_past.c reads and removes old segments. */
#pragma once

#include "base/clock.h"
#include "ledger/ledger.h"

#include <sys/stat.h>
#include <time.h>

struct signed_record {
    struct bytes record;
    struct merkle_hash leaf;
};

struct ledger {
    uint64_t last_size; /* of the last written record, with its frame */
    struct ledger_settings settings;
    int folder, lock, tree_file, reserve;
    int segment; /* the newest */
    /* For groups, whose sync may be on a thread: the kernel reports an error of the disk once for
     * each open of a file, and the thread must not take it from a sync here, nor that from it. */
    int group_segment, group_tree;
    uint64_t first, end; /* of the newest: its first record, and the end of its last one */
    struct signing_key key;
    ino_t key_inode; /* and time of its file, since another process may rotate the key */
    struct timespec key_since;
    struct merkle_edge edge;
    struct merkle_tree tree;
    struct merkle_head covered; /* by the last known checkpoint */
    uint64_t on_disk;           /* records of the last sync here, also without a checkpoint */
    bool is_suspect;            /* a sync has failed: its data may not be on disk */
    bool is_compared;           /* records that are read again must fit their check */
    uint64_t torn;
    bool is_locked;
    bool holder_is_stuck; /* a wait for the lock timed out, and its holder is the same */
    bool is_short;        /* the reserve is used */
    deadline next_look;
};

/* Waits for a lock of flock(2). Returns false, with errno EWOULDBLOCK, if another holds it. */
bool ledger_flock(int file, int64_t max_ms);
int64_t ledger_lock_max_ms(const struct ledger *ledger);

/* The functions below need the lock, except ledger_read_checkpoint(). Fails ERR_BUSY. */
int ledger_lock(struct ledger *ledger, error *err);
void ledger_unlock(struct ledger *ledger);

/* Adds a record at the position that ledger_begin() has found. */
int ledger_commit_locked(struct ledger *ledger, const char *type, const struct bytes *payload,
                         error *err);

/* --- ledger_end.c ---- */

int ledger_open_segment(struct ledger *ledger, uint64_t first, int flags, error *err);

/* Stores the hashes that a leaf has completed. */
int ledger_grow(struct ledger *ledger, const struct merkle_hash *leaf, error *err);

/* Bytes after which the next segment begins. */
uint64_t ledger_rotates_at(const struct ledger *ledger);

/* Reads what other writers have added. `known`: the number of records in our tree. */
int ledger_catch_up(struct ledger *ledger, uint64_t known, error *err);

/* Gives  the last checkpoint, "" if there is none, and `covered`. */
int ledger_read_checkpoint(struct ledger *ledger, char text[CHECKPOINT_SIZE], error *err);

/* Load the tree's edge at the checkpoint; then read from there to the last complete record. */
int ledger_load_edge(struct ledger *ledger, error *err);
int ledger_find_end(struct ledger *ledger, error *err);

/* --- ledger_group.c ---- */

int ledger_sign_checkpoint(struct ledger *ledger, error *err);
int ledger_sync_locked(struct ledger *ledger, error *err); /* if there is anything new */
int ledger_sync_records(struct ledger *ledger, error *err);

/* --- ledger_key.c ---- */

/* Reads the key again if another process has changed its file. */
int ledger_refresh_key(struct ledger *ledger, error *err);

/* Completes or drops a change of key during which a process died. */
int ledger_settle_next_key(struct ledger *ledger, error *err);
