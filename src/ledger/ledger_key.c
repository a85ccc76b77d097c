/* ledger_key.c - the signing key, and its change. The log records the next key before that becomes
 * valid, so that if the process dies meanwhile, one of the two is. */
#include "ledger/ledger_internal.h"

#include "base/auto_free.h"
#include "ledger/chain.h"
#include "ledger/envelope.h"
#include "ledger/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ledger_refresh_key(struct ledger *ledger, error *err)
{
    struct stat status;
    if (fstatat(ledger->folder, "key", &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : fail_os(err, "look at the signing key");
    if (status.st_ino == ledger->key_inode && status.st_ctim.tv_sec == ledger->key_since.tv_sec &&
        status.st_ctim.tv_nsec == ledger->key_since.tv_nsec)
        return 0;
    if (key_open(ledger->folder, &ledger->key, err) < 0)
        return -1;
    ledger->key_inode = status.st_ino;
    ledger->key_since = status.st_ctim;
    return 0;
}

/* The log has recorded the next key: it becomes the key, and signs a checkpoint. */
static int take_next_key(struct ledger *ledger, const struct bytes *record,
                         const struct signing_key *next, error *err)
{
    auto_free struct key_chain *chain = malloc(sizeof *chain);
    if (!chain)
        return fail(err, ERR_SYSTEM, "no memory for the log's keys");
    int result = key_chain_read(ledger->folder, chain, err);
    bool is_told = result == 0 && chain->count > 0 &&
                   strcmp(chain->links[chain->count - 1].to.id, next->public.id) == 0;
    if (result < 0 || (!is_told && key_chain_add(ledger->folder, record, err) < 0) ||
        key_take_next(ledger->folder, &next->public, err) < 0 ||
        ledger_refresh_key(ledger, err) < 0)
        return -1;
    return ledger_sign_checkpoint(ledger, err);
}

/* If a process died while it changed the key, the last record of the log says whether the change
 * counts: every writer checks that before its first record. */
int ledger_settle_next_key(struct ledger *ledger, error *err)
{
    if (faccessat(ledger->folder, "key.next", F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    struct signing_key next;
    struct chain_link link;
    auto_bytes record = { 0 };
    int found = key_find_next(ledger->folder, &next, err);
    if (found <= 0)
        return found;
    /* If the record cannot be read now, keep the next key, which the log may have recorded. */
    int result = ledger->edge.size > 0
                     ? segments_read(ledger->folder, ledger->edge.size - 1, &record, err)
                     : 0;
    if (result < 0 && err->code == ERR_NOT_FOUND)
        result = 0;
    bool is_told = result == 0 && record.size > 0 &&
                   key_chain_take(record.data, record.size, &link) &&
                   strcmp(link.to.id, next.public.id) == 0;
    if (is_told)
        result = take_next_key(ledger, &record, &next, err);
    else if (result == 0)
        key_drop_next(ledger->folder);
    key_forget(&next);
    return result;
}

/* A recorded change of key cannot be undone, so this checks for space before. */
static int check_room_for_key(struct ledger *ledger, error *err)
{
    auto_free struct key_chain *chain = malloc(sizeof *chain);
    if (!chain)
        return fail(err, ERR_SYSTEM, "no memory for the log's keys");
    if (key_chain_read(ledger->folder, chain, err) < 0)
        return -1;
    if (chain->count == CHAIN_MAX)
        return fail(err, ERR_LIMIT, "the log has had %d keys; begin a new one", CHAIN_MAX);
    if (!ledger_has_room(ledger))
        return fail(err, ERR_UNAVAILABLE, "the disk of the log is full: make room there first");
    return 0;
}

int ledger_rotate_key(struct ledger *ledger, ledger_tell_rotation *tell, error *err)
{
    struct signing_key next;
    struct merkle_head head;
    auto_bytes payload = { 0 }, record = { 0 };
    if (ledger_begin(ledger, &head, err) < 0)
        return -1;
    int result = check_room_for_key(ledger, err);
    if (result == 0)
        result = key_make_next(ledger->folder, &next, err);
    if (result == 0)
        result = tell(&head, &ledger->key.public, &next.public, &payload, err);
    if (result == 0)
        result = ledger_commit_locked(ledger, TYPE_EVENT, &payload, err);
    if (result == 0)
        result = ledger_sync_locked(ledger, err); /* to disk, with a checkpoint by the old key */
    if (result == 0)
        result = segments_read(ledger->folder, head.size, &record, err);
    if (result == 0)
        result = take_next_key(ledger, &record, &next, err);
    key_forget(&next);
    ledger_unlock(ledger);
    return result;
}

const struct public_key *ledger_key(const struct ledger *ledger)
{
    return &ledger->key.public;
}
