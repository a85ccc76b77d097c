/* ledger_end.c - finds the end of the log: reads the records after the last checkpoint, also those
 * of other writers, up to the last complete one. An incomplete record after it is cut off. */
#include "ledger/ledger_internal.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "ledger/chain.h"
#include "ledger/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static const uint64_t segment_max = UINT64_C(8) << 20;

int ledger_open_segment(struct ledger *ledger, uint64_t first, int flags, error *err)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(first, name);
    auto_fd file = openat(ledger->folder, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
    auto_fd group = file < 0 ? -1 : openat(ledger->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (group < 0)
        return fail_os(err, "open segment %s of the log", name);
    close_fd(&ledger->segment);
    close_fd(&ledger->group_segment);
    ledger->segment = take_fd(&file);
    ledger->group_segment = take_fd(&group);
    ledger->first = first;
    ledger->end = 0;
    return 0;
}

/* Stores the hashes that a leaf has completed. */
int ledger_grow(struct ledger *ledger, const struct merkle_hash *leaf, error *err)
{
    struct merkle_hash hashes[MERKLE_GROWTH_MAX];
    struct merkle_edge edge = ledger->edge;
    size_t count = merkle_edge_add(&edge, leaf, hashes);
    off_t place = (off_t) (merkle_stored(ledger->edge.size) * sizeof *hashes);
    ssize_t size = (ssize_t) (count * sizeof *hashes);
    if (pwrite(ledger->tree_file, hashes, (size_t) size, place) != size)
        return fail_os(err, "write the log's tree");
    ledger->edge = edge;
    return 0;
}

/* After a failed sync, of this or another writer, the kernel may treat data as written although it
 * is not on disk. Written again, it is covered by the next sync. */
static int write_again(const struct ledger *ledger, const struct segment *segment,
                       const struct record *record, error *err)
{
    ssize_t size = (ssize_t) (FRAME_SIZE + record->size);
    errno = ENOSPC; /* a short write sets no errno */
    return pwrite(ledger->segment, segment->data + record->offset, (size_t) size,
                  (off_t) record->offset) == size
               ? 0
               : fail_os(err, "write the log's last records again");
}

/* Reads the newest segment from the current position on. Records before `known` are in the tree,
 * and are skipped; later ones are hashed and added to it. */
static int walk(struct ledger *ledger, uint64_t index, uint64_t known, error *err)
{
    struct segment segment;
    struct record record;
    struct merkle_hash leaf;
    int result = 0;
    if (segment_map(ledger->segment, &segment, err) < 0)
        return -1;
    for (; result == 0; index++) {
        int found = segment_next(&segment, ledger->end, index, &record);
        bool is_new = index >= known;
        if (found == SEGMENT_RECORD && is_new && !record_is_whole(&record, &leaf))
            found = SEGMENT_TORN;
        if (found != SEGMENT_RECORD)
            break;
        if (is_new)
            result = write_again(ledger, &segment, &record, err) < 0
                         ? -1
                         : ledger_grow(ledger, &leaf, err);
        ledger->end = record.offset + FRAME_SIZE + record.size;
    }
    uint64_t torn = segment.size - ledger->end;
    segment_unmap(&segment);
    if (result < 0)
        return result;
    if (index < known)
        return fail(err, ERR_UNAVAILABLE,
                    "record %" PRIu64 " of the log is %s although a checkpoint covers it; run: "
                    "glovebox log verify",
                    index, torn > 0 ? "damaged" : "missing");
    if (torn == 0)
        return 0;
    if (ledger->is_compared)
        return fail(err, ERR_UNAVAILABLE, "record %" PRIu64 " of the log is damaged", index - 1);
    if (ftruncate(ledger->segment, (off_t) ledger->end) < 0)
        return fail_os(err, "cut off %" PRIu64 " torn bytes of the log", torn);
    ledger->torn += torn;
    return 0;
}

uint64_t ledger_rotates_at(const struct ledger *ledger)
{
    return ledger->settings.segment_max ? ledger->settings.segment_max : segment_max;
}

int ledger_catch_up(struct ledger *ledger, uint64_t known, error *err)
{
    for (;;) {
        struct stat status;
        if (fstat(ledger->segment, &status) < 0)
            return fail_os(err, "look at the log");
        uint64_t index = ledger->edge.size;
        if (ledger->end == 0)
            index = ledger->first;
        if ((uint64_t) status.st_size < ledger->end)
            return fail(err, ERR_UNAVAILABLE,
                        "the log was shortened behind record %" PRIu64 "; run: glovebox log "
                        "verify",
                        ledger->first);
        if ((uint64_t) status.st_size > ledger->end && walk(ledger, index, known, err) < 0)
            return -1;
        if (ledger->end < ledger_rotates_at(ledger))
            return 0;
        error none;
        if (ledger_open_segment(ledger, ledger->edge.size, 0, &none) < 0) {
            *err = none;
            return none.os == ENOENT ? 0 : -1; /* the next segment does not exist yet */
        }
        known = ledger->edge.size;
    }
}

int ledger_read_checkpoint(struct ledger *ledger, char text[CHECKPOINT_SIZE], error *err)
{
    auto_fd file = openat(ledger->folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0 && errno == ENOENT) {
        ledger->covered = (struct merkle_head){ 0 };
        text[0] = '\0';
        return 0;
    }
    ssize_t got = file < 0 ? -1 : read(file, text, CHECKPOINT_SIZE - 1);
    if (got < 0)
        return fail_os(err, "read the log's checkpoint");
    text[got] = '\0';
    if (ledger_refresh_key(ledger, err) < 0)
        return -1;
    if (checkpoint_read(text, &ledger->key.public, &ledger->covered, err) == 0)
        return 0;
    /* Signed by the old key, if a rotation was interrupted. */
    auto_free struct key_chain *chain = malloc(sizeof *chain);
    error unused;
    bool is_good =
        chain && key_chain_read(ledger->folder, chain, &unused) == 0 &&
        key_chain_number(chain, ledger->key.public.id) >= 0 &&
        key_chain_checkpoint(chain, &ledger->key.public, text, &ledger->covered, &unused) == 0;
    return is_good ? 0 : -1;
}

/* Loads the edge of the tree at the checkpoint; its root must be the signed one. */
int ledger_load_edge(struct ledger *ledger, error *err)
{
    struct merkle_hash root;
    if (merkle_edge_load(&ledger->tree, ledger->covered.size, &ledger->edge, err) < 0)
        return -1;
    merkle_edge_root(&ledger->edge, &root);
    if (ledger->covered.size > 0 && !merkle_equal(&root, &ledger->covered.root))
        return fail(err, ERR_UNAVAILABLE,
                    "the log's tree does not fit its checkpoint; run: glovebox log verify");
    return 0;
}

/* Reads from the segment with the checkpoint's last record to the newest. */
int ledger_find_end(struct ledger *ledger, error *err)
{
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(ledger->folder, &firsts, &count, err) < 0)
        return -1;
    uint64_t first = 0;
    for (size_t i = 0; i < count && firsts[i] <= ledger->covered.size; i++)
        first = firsts[i];
    bool is_there = count > 0 && firsts[0] <= ledger->covered.size;
    bool has_lost =
        is_there ? count > 1 && ledger->covered.size == 0 : count > 0 || ledger->covered.size > 0;
    if (has_lost) /* a segment is never begun before a checkpoint covers the one before it */
        return fail(err, ERR_UNAVAILABLE,
                    "the log's segments and its checkpoint (%" PRIu64
                    " records) do not fit; run: glovebox log verify",
                    ledger->covered.size);
    if (ledger_open_segment(ledger, first, is_there ? 0 : O_CREAT | O_EXCL, err) < 0 ||
        ledger_catch_up(ledger, ledger->covered.size, err) < 0)
        return -1;
    struct stat status;
    off_t stored = (off_t) (merkle_stored(ledger->edge.size) * MERKLE_HASH_SIZE);
    if (ledger->edge.size > ledger->first && ledger->end == 0)
        return fail(err, ERR_UNAVAILABLE, "record %" PRIu64 " of the log is missing",
                    ledger->first);
    if (fstat(ledger->tree_file, &status) == 0 && status.st_size > stored &&
        ftruncate(ledger->tree_file, stored) < 0)
        return fail_os(err, "shorten the log's tree");
    return 0;
}
