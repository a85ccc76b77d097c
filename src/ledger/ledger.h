/* ledger.h - writes the log of receipts and events: an append-only sequence of records, a Merkle
 * tree over them, and a signed checkpoint after each group. (It is named ledger, since log.h is the
 * daemon's diagnostic log.)
 *
 * Its folder has  NNN.log   segments (segment.h), each named by its first record
 *                 tree      the hashes of the Merkle tree (merkle.h); they outlive retention
 *                 checkpoint, key, key.pub, lock, reserve
 * Several daemons may write at the same time (each `glovebox run` without a service is one): each
 * append holds a lock, and first reads what the others have added. An incomplete record of a writer
 * that was killed is cut off by the next, which records that as an event.
 *
 *   Threads  none.   See  docs/decisions/0033, docs/receipts.md */
#pragma once

#include "base/bytes.h"
#include "ledger/checkpoint.h"

#include <stdbool.h>

struct ledger;

struct ledger_settings {
    bool sync_each;       /* each record is on disk before ledger_commit() returns; else the caller
                             calls ledger_sync() for groups of them */
    uint64_t segment_max; /* bytes after which the next segment begins, as soon as all records are
                             on disk; after four times as many it begins with a sync; 0: 8 MiB */
    uint64_t keep_max;    /* bytes of segments; see ledger_retention(); 0: all are kept */
    int64_t lock_max_ms;  /* how long to wait for another writer; 0: 5 s */
    uint64_t reserve;     /* bytes reserved for when the disk is full; 0: 4 MiB */
    /* Gets each checkpoint; NULL: none. */
    void (*witness)(void *context, const char *text, size_t size);
    void *witness_context;
};

/* Opens the log in `folder`, or begins one: makes the key, cuts off an incomplete record.
 * Takes    nothing; `folder` is duplicated. Gives *ret_ledger, closed with ledger_close().
 * Fails    ERR_UNAVAILABLE  records that the checkpoint covers are missing or damaged, the key is
 *                           open to others: glovebox log verify names what is wrong
 *          ERR_BUSY         another writer does not release the lock */
int ledger_open(int folder, const struct ledger_settings *settings, struct ledger **ret_ledger,
                error *err);
void ledger_close(struct ledger *ledger); /* with a last checkpoint */

const struct public_key *ledger_key(const struct ledger *ledger);
uint64_t ledger_size(const struct ledger *ledger); /* records, without new ones of other writers */

/* Adds a record in two steps, since its position is part of what is signed. The lock is held
 * between them; ledger_abandon() releases it instead. Gives  *ret_head: the tree before the record,
 * whose index is its size. Fails  ERR_BUSY, ERR_UNAVAILABLE as ledger_open(); ERR_SYSTEM (disk and
 * reserve are full) */
int ledger_begin(struct ledger *ledger, struct merkle_head *ret_head, error *err);
int ledger_commit(struct ledger *ledger, const char *type, const struct bytes *payload, error *err);
void ledger_abandon(struct ledger *ledger);

/* Makes a new signing key. The old key signs a last record that names the new one; `tell` writes
 * its payload. If the process dies meanwhile, one of the two keys is valid. Other writers use the
 * new key from their next record on. */
typedef int ledger_tell_rotation(const struct merkle_head *before, const struct public_key *old,
                                 const struct public_key *fresh, struct bytes *payload, error *err);
int ledger_rotate_key(struct ledger *ledger, ledger_tell_rotation *tell, error *err);

uint64_t ledger_free_bytes(const struct ledger *ledger); /* free on its disk; 0: unknown */
/* Bytes of the last record that was written here, with its frame. */
uint64_t ledger_last_size(const struct ledger *ledger);

/* Syncs everything to disk and signs a checkpoint, if there is anything new. */
int ledger_sync(struct ledger *ledger, error *err);
bool ledger_is_dirty(const struct ledger *ledger);
uint64_t ledger_covered(const struct ledger *ledger); /* records that a checkpoint covers */

/* The same in three steps. The second waits for the disk, publishes the checkpoint, and uses only
 * the group, so that the writer can go on. Records that are added after the first step belong to
 * the next group.
 * Threads  ledger_group_sync() on any one, while others use the ledger */
struct ledger_group {
    struct merkle_head head;
    struct public_key key;
    char text[CHECKPOINT_SIZE]; /* the checkpoint */
    int folder, segment, tree;
    int64_t lock_max_ms; /* how long to wait for another writer's checkpoint; set by begin */
    bool is_on_disk;     /* its records */
    bool is_named;       /* its checkpoint is the published one */
};

int ledger_group_begin(const struct ledger *ledger, struct ledger_group *group, error *err);
int ledger_group_sync(struct ledger_group *group, error *err);
int ledger_group_end(struct ledger *ledger, struct ledger_group *group, error *err);
/* Call it when the second step has left `is_on_disk` false: the kernel may treat the data as
 * written although it is not. ledger_mend() reads it again, compares it, and writes it again; until
 * then no group is signed. Fails  ERR_UNAVAILABLE  it has changed, or cannot be written. */
void ledger_distrust(struct ledger *ledger);
int ledger_mend(struct ledger *ledger, error *err);
void ledger_group_done(struct ledger_group *group); /* once after each begin that succeeded */

/* Does another writer hold the lock now? One that is stopped may hold it for long. */
bool ledger_is_held(const struct ledger *ledger);

/* Tests whether the disk can be written. Fails  ERR_UNAVAILABLE  read-only, or broken. */
int ledger_probe(const struct ledger *ledger, error *err);

/* False: the disk is full, and the rest is reserved for executions that have begun. */
bool ledger_has_room(struct ledger *ledger);

/* Bytes that have been cut off since the last call; 0 if none. */
uint64_t ledger_truncate_tail(struct ledger *ledger);

/* Adds record `index` to `out`. Fails  ERR_NOT_FOUND  none, or retention deleted it. */
int ledger_read(struct ledger *ledger, uint64_t index, struct bytes *out, error *err);

struct record;

/* Calls `each` with every record from `from` on, in order, until it returns other than 0: cheaper
 * than reading them one by one. Returns and fails as `each` does. See ledger/segment.h. */
int ledger_each(struct ledger *ledger, uint64_t from,
                int (*each)(void *context, const struct record *record, error *err), void *context,
                error *err);

/* The published checkpoint, and its tree, for proofs. Records after it are not covered yet. */
const struct merkle_tree *ledger_tree(const struct ledger *ledger);
int ledger_checkpoint(struct ledger *ledger, char ret_text[CHECKPOINT_SIZE],
                      struct merkle_head *ret, error *err);
/* The first record that retention has kept. */
int ledger_first(struct ledger *ledger, uint64_t *ret_first, error *err);

/* Retention in two calls, so that the caller can record it in between. True if segments before
 * *ret_first are to be deleted. Their hashes stay in the tree, so proofs stay valid. */
bool ledger_retention(struct ledger *ledger, uint64_t *ret_first);
void ledger_drop_before(int folder, uint64_t first); /* on any thread; 0: none */
