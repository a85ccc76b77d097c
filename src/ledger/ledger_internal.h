/* ledger_internal.h - what only the files of the ledger share: ledger.c writes
 * records, ledger_end.c finds where they end, ledger_group.c signs what is on disk, ledger_key.c
 * changes the key, ledger_past.c reads and removes old segments. */
#pragma once

#include "base/clock.h"
#include "ledger/ledger.h"

#include <sys/stat.h>
#include <time.h>

/* A record as it is written, and, of one that was signed ahead, what it was made of. */
struct signed_record {
    struct bytes record;
    struct merkle_hash leaf;
    bool is_there;
    struct bytes payload;
    const char *type;
    char key_id[KEY_ID_SIZE];
};

struct ledger {
    uint64_t last_size; /* of the record that was written last, with its frame */
    struct ledger_settings settings;
    int folder, lock, tree_file, reserve;
    int segment;         /* the newest */
    uint64_t first, end; /* of the newest: its first record, and where its last one ends */
    struct signing_key key;
    ino_t key_inode; /* of its file, and since when: another process may have rotated it */
    struct timespec key_since;
    struct merkle_edge edge;
    struct merkle_tree tree;
    struct merkle_head covered; /* by the last checkpoint that we know */
    struct signed_record ahead; /* ledger_presign() */
    bool is_suspect;  /* a sync has failed: what it was to bring to disk is not believed */
    bool is_compared; /* what is read again must be whole */
    uint64_t torn;
    bool is_locked;
    bool holder_is_stuck; /* another writer was waited for in vain, and has the lock still */
    bool is_short;        /* the reserve is used */
    deadline next_look;
};

/* One writer at a time: all below are called by the one that has the lock. Fails ERR_BUSY. */
int ledger_lock(struct ledger *ledger, error *err);
void ledger_unlock(struct ledger *ledger);

/* Adds a record to what ledger_begin() has looked at. */
int ledger_commit_locked(struct ledger *ledger, const char *type, const struct bytes *payload,
                         error *err);

/* --- ledger_end.c ---- */

int ledger_open_segment(struct ledger *ledger, uint64_t first, int flags, error *err);

/* Stores the hashes that a leaf has completed. */
int ledger_grow(struct ledger *ledger, const struct merkle_hash *leaf, error *err);

/* Bytes after which the next segment is begun. */
uint64_t ledger_rotates_at(const struct ledger *ledger);

/* Takes in what other writers have added. `known`: so many records are in our tree already. */
int ledger_catch_up(struct ledger *ledger, uint64_t known, error *err);

/* Gives  the last checkpoint, "" if there is none, and `covered`. */
int ledger_read_checkpoint(struct ledger *ledger, char text[CHECKPOINT_SIZE], error *err);

/* The edge of the tree where the checkpoint stands; then from there to the last whole record. */
int ledger_load_edge(struct ledger *ledger, error *err);
int ledger_find_end(struct ledger *ledger, error *err);

/* --- ledger_group.c ---- */

int ledger_sign_checkpoint(struct ledger *ledger, error *err);
int ledger_sync_locked(struct ledger *ledger, error *err); /* if there is anything new */

/* --- ledger_key.c ---- */

/* The key is that of its file, which another process may have exchanged. */
int ledger_refresh_key(struct ledger *ledger, error *err);

/* What a process that died while it changed the key has left. */
int ledger_settle_next_key(struct ledger *ledger, error *err);
