/* ledger.h - the log of receipts and events, to be written: append-only, one line of records, one
 * Merkle tree over them, a signed checkpoint after each group. ("Ledger", since log.h is what the
 * daemon says to people.)
 *
 * In its folder lie  NNN.log   segments (segment.h), each named by its first record
 *                    tree      the hashes of the Merkle tree (merkle.h); they outlive retention
 *                    checkpoint, key, key.pub, lock, reserve
 * Several daemons may write at once (each `glovebox run` without a service is one): each append
 * holds a lock, and first takes in what the others have added. What one that was killed has left
 * torn is cut off by the next, and told as an event.
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
    uint64_t segment_max; /* bytes after which the next segment is begun; 0: 8 MiB */
    uint64_t keep_max;    /* bytes of segments; see ledger_retention(); 0: all are kept */
    int64_t lock_max_ms;  /* how long another writer is waited for; 0: 5 s */
    uint64_t reserve;     /* bytes kept back for the day the disk is full; 0: 4 MiB */
    /* Sees each checkpoint; NULL: none. */
    void (*witness)(void *context, const char *text, size_t size);
    void *witness_context;
};

/* Opens the log in `folder`, or begins one: makes the key, cuts off what is torn.
 * Takes    nothing; `folder` is duplicated. Gives *ret_ledger, ended with ledger_close().
 * Fails    ERR_UNAVAILABLE  records that the checkpoint covers are missing or damaged, the key is
 *                           open to others: glovebox log verify names what is wrong
 *          ERR_BUSY         another writer holds the lock and does not move */
int ledger_open(int folder, const struct ledger_settings *settings, struct ledger **ret_ledger,
                error *err);
void ledger_close(struct ledger *ledger); /* with a last checkpoint */

const struct public_key *ledger_key(const struct ledger *ledger);
uint64_t ledger_size(const struct ledger *ledger); /* records, as far as we have seen */

/* A record in two steps: the position becomes part of what is signed. Between them the lock is
 * held; ledger_abandon() gives it back instead. Gives  *ret_head: the tree before the record, whose
 * index is its size. Fails  ERR_BUSY, ERR_UNAVAILABLE as ledger_open(); ERR_SYSTEM (disk full, the
 * reserve used up) */
int ledger_begin(struct ledger *ledger, struct merkle_head *ret_head, error *err);
int ledger_commit(struct ledger *ledger, const char *type, const struct bytes *payload, error *err);
void ledger_abandon(struct ledger *ledger);

/* In place of ledger_commit(): signs this payload for the case that it will be committed, and gives
 * the lock back. ledger_commit() of the very same bytes then finds the work done. */
void ledger_presign(struct ledger *ledger, const char *type, const struct bytes *payload);

/* Makes a new signing key. The log tells of it by a last record of the old one, whose payload
 * `tell` writes; a process that dies in between leaves a log with the one or the other. Other
 * writers see it before their next record. */
typedef int ledger_tell_rotation(const struct merkle_head *before, const struct public_key *old,
                                 const struct public_key *fresh, struct bytes *payload, error *err);
int ledger_rotate_key(struct ledger *ledger, ledger_tell_rotation *tell, error *err);

/* Bytes of the last record that was written here, with its frame. */
/* Bytes that are left on the disk for more; 0: unknown. */
uint64_t ledger_free_bytes(const struct ledger *ledger);
uint64_t ledger_last_size(const struct ledger *ledger);

/* Brings everything to disk and signs a checkpoint, if there is anything new. */
int ledger_sync(struct ledger *ledger, error *err);
bool ledger_is_dirty(const struct ledger *ledger);

/* The same in three steps, of which the second waits for the disk: it touches nothing but the
 * group, so that the writer goes on meanwhile. Records that are added after the first step belong
 * to the next group. Threads  ledger_group_sync() on any one, while others use the ledger */
struct ledger_group {
    struct merkle_head head;
    char text[CHECKPOINT_SIZE]; /* the checkpoint */
    int segment, tree, note;
};

int ledger_group_begin(const struct ledger *ledger, struct ledger_group *group, error *err);
int ledger_group_sync(const struct ledger_group *group, error *err);
int ledger_group_end(struct ledger *ledger, const struct ledger_group *group, error *err);
/* The second step has failed: the kernel may hold as if it were on disk what it was to bring there.
 * ledger_mend() reads it again, compares it, and writes it again; until then no group is signed.
 * Fails  ERR_UNAVAILABLE  it is not what it was, or cannot be written. */
void ledger_distrust(struct ledger *ledger);
int ledger_mend(struct ledger *ledger, error *err);
void ledger_group_done(struct ledger_group *group); /* after all that have begun, ended or not */

/* Does another writer hold the log at this moment? One that was stopped may for long. */
bool ledger_is_held(const struct ledger *ledger);

/* Does the disk take what is written? Fails  ERR_UNAVAILABLE  read-only, or broken. */
int ledger_probe(const struct ledger *ledger, error *err);

/* False: the disk is full and what is left is for executions that have begun. */
bool ledger_has_room(struct ledger *ledger);

/* Bytes that were cut off when the log was opened, or since; 0 if none. Forgets them. */
uint64_t ledger_truncate_tail(struct ledger *ledger);

/* Adds record `index` to `out`. Fails  ERR_NOT_FOUND  it does not exist, or retention took it. */
int ledger_read(struct ledger *ledger, uint64_t index, struct bytes *out, error *err);

struct record;

/* Hands out every record from `from` on, in order, until `each` returns other than 0: cheaper than
 * reading them one by one. Returns and fails as `each` does. See ledger/segment.h. */
int ledger_each(struct ledger *ledger, uint64_t from,
                int (*each)(void *context, const struct record *record, error *err), void *context,
                error *err);

/* The tree as far as the last checkpoint goes, for proofs. */
const struct merkle_tree *ledger_tree(const struct ledger *ledger);
int ledger_checkpoint(struct ledger *ledger, char ret_text[CHECKPOINT_SIZE],
                      struct merkle_head *ret, error *err);
/* First record that retention has left. */
int ledger_first(struct ledger *ledger, uint64_t *ret_first, error *err);

/* Retention, in the caller's hands so that the log can tell of it first: true if segments before
 * *ret_first are more than is kept. Their hashes stay in the tree: proofs go on to hold. */
bool ledger_retention(struct ledger *ledger, uint64_t *ret_first);
void ledger_drop_before(struct ledger *ledger, uint64_t first);
