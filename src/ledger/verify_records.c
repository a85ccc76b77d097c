/* verify_records.c - finds the records of a log, and hashes each. */
#include "ledger/verify_internal.h"

#include "base/auto_free.h"
#include "base/cleanup.h"
#include "ledger/envelope.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STRIPE = 64, WORKERS_MAX = 64 };

void checking_problem(const struct checking *checking, const char *what, const char *why)
{
    checking->report->problems++;
    if (!checking->is_quiet)
        checking->order->problem(checking->order->context, what, why);
}

void checking_record_problem(const struct checking *checking, uint64_t index, const char *why)
{
    char what[40];
    (void) snprintf(what, sizeof what, "record %" PRIu64, index);
    checking_problem(checking, what, why);
}

void checking_range_problem(const struct checking *checking, uint64_t first, uint64_t end,
                            const char *why)
{
    char what[64];
    if (end == first + 1) {
        checking_record_problem(checking, first, why);
        return;
    }
    (void) snprintf(what, sizeof what, "records %" PRIu64 " to %" PRIu64, first, end - 1);
    checking_problem(checking, what, why);
}

/* --- finding records -------------------------------------------------------------------------- */

static int add_record(struct checking *checking, const struct record *record, error *err)
{
    if (checking->record_count == checking->record_room) {
        size_t room = checking->record_room ? 2 * checking->record_room : 1024;
        struct record *more = reallocarray(checking->records, room, sizeof *more);
        if (!more)
            return fail(err, ERR_SYSTEM, "no memory for %zu records", room);
        checking->records = more;
        checking->record_room = room;
    }
    checking->records[checking->record_count++] = *record;
    return 0;
}

/* Is the unexpected index of a frame right? Yes if the next frame has the index after it, or, at
 * the end, if the checkpoint covers that many records. Else the index itself is damaged. */
static bool is_believed(const struct checking *checking, const struct segment *segment, uint64_t at,
                        uint64_t index)
{
    struct record record, next;
    struct merkle_hash leaf;
    if (segment_next(segment, at, index, &record) != SEGMENT_RECORD ||
        !record_is_whole(&record, &leaf))
        return false;
    int found = segment_next(segment, at + FRAME_SIZE + record.size, index + 1, &next);
    return found == SEGMENT_RECORD || (found == SEGMENT_END && index < checking->head.size);
}

/* Finds the next frame after a damaged part, so that later records are checked too. */
static bool find_frame(const struct checking *checking, const struct segment *segment,
                       uint64_t *offset, uint64_t *index)
{
    for (uint64_t at = *offset; at + FRAME_SIZE < segment->size; at++) {
        uint64_t said;
        if (memcmp(segment->data + at, "GBR1", 4) != 0)
            continue;
        memcpy(&said, segment->data + at + 8, sizeof said);
        if (said >= *index && is_believed(checking, segment, at, said)) {
            *offset = at;
            *index = said;
            return true;
        }
    }
    return false;
}

static int walk_segment(struct checking *checking, const struct segment *segment, uint64_t *index,
                        error *err)
{
    struct record record;
    for (uint64_t offset = 0;;) {
        int found = segment_next(segment, offset, *index, &record);
        if (found == SEGMENT_END)
            return 0;
        if (found == SEGMENT_RECORD) {
            if (add_record(checking, &record, err) < 0)
                return -1;
            offset = record.offset + FRAME_SIZE + record.size;
            ++*index;
            continue;
        }
        uint64_t damaged = *index;
        checking->has_gap = true;
        bool goes_on = find_frame(checking, segment, &offset, index);
        checking_range_problem(checking, damaged, *index > damaged ? *index : damaged + 1,
                               goes_on && *index == damaged
                                   ? "bytes that belong to no record stand before it"
                                   : "its frame is damaged, torn or removed");
        if (!goes_on) {
            ++*index;
            return 0;
        }
    }
}

int verify_walk_segments(struct checking *checking, error *err)
{
    auto_free uint64_t *firsts = NULL;
    size_t count = 0;
    if (segments_list(checking->order->folder, &firsts, &count, err) < 0)
        return -1;
    checking->segments = calloc(count + 1, sizeof *checking->segments);
    uint64_t index = count > 0 ? firsts[0] : 0;
    int result =
        checking->segments ? 0 : fail(err, ERR_SYSTEM, "no memory for %zu segments", count);
    checking->report->first = index;
    for (size_t i = 0; result == 0 && i < count; i++) {
        char name[SEGMENT_NAME_SIZE];
        segment_name(firsts[i], name);
        auto_fd file = openat(checking->order->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
        struct segment *segment = &checking->segments[checking->segment_count];
        if (file < 0)
            result = fail_os(err, "open segment %s", name);
        else
            result = segment_map(file, segment, err);
        if (result < 0)
            break;
        checking->segment_count++;
        checking->report->bytes += segment->size;
        if (firsts[i] > index) {
            checking_range_problem(checking, index, firsts[i], "missing: no segment holds it");
            checking->has_gap = true;
        } else if (firsts[i] < index) {
            checking_problem(checking, name, "begins with a record that another segment holds");
        }
        index = firsts[i];
        result = walk_segment(checking, segment, &index, err);
    }
    checking->report->size = index;
    return result;
}

/* --- hashing records -------------------------------------------------------------------------- */

static bool after(const char **at, const char *end, const char *words)
{
    size_t size = strlen(words);
    const char *found = memmem(*at, (size_t) (end - *at), words, size);
    if (found)
        *at = found + size;
    return found;
}

/* In canonical JSON a quote within a string has a backslash before it, so these words can only be
 * the member itself. */
bool payload_place(const struct bytes *payload, struct signed_place *ret_place)
{
    if (!payload->data)
        return false;
    const char *at = payload->data, *end = payload->data + payload->size;
    size_t size = 0;
    if (!after(&at, end, "\"log\":{\"index\":"))
        return false;
    uint64_t index = 0;
    for (; at < end && *at >= '0' && *at <= '9' && index < UINT64_MAX / 100; at++)
        index = 10 * index + (uint64_t) (*at - '0');
    ret_place->index = index;
    return after(&at, end, "\"root_before\":\"") && end - at > MERKLE_HEX_SIZE &&
           sodium_hex2bin(ret_place->root_before.bytes, MERKLE_HASH_SIZE, at, MERKLE_HEX_SIZE, NULL,
                          &size, NULL) == 0 &&
           size == MERKLE_HASH_SIZE;
}

/* The first kept record, if this is the event of a retention; else `otherwise`. */
static uint64_t payload_trim(const struct bytes *payload, uint64_t otherwise)
{
    if (!payload->data)
        return otherwise;
    const char *at = payload->data, *end = payload->data + payload->size;
    if (!after(&at, end, "\"event\":\"log.trimmed\",\"facts\":{\"first_kept\":"))
        return otherwise;
    return strtoull(at, NULL, 10);
}

static void check_signature(const struct checking *checking, const struct record *record,
                            struct finding *finding)
{
    auto_envelope envelope = { 0 };
    error err;
    finding->is_checked = true;
    if (envelope_read(record->data, record->size, &envelope, &err) < 0) {
        finding->is_no_envelope = true;
        return;
    }
    const struct public_key *key =
        key_chain_at(checking->chain, checking->order->key, record->index);
    finding->is_forged = envelope_check(&envelope, key, &err) < 0;
    finding->has_no_place = !payload_place(&envelope.payload, &finding->place);
    finding->trimmed = payload_trim(&envelope.payload, finding->trimmed);
}

static void look_at(const struct checking *checking, size_t number, bool every_signature)
{
    const struct record *record = &checking->records[number];
    struct finding *finding = &checking->findings[number];
    finding->is_changed = !record_is_whole(record, &finding->leaf);
    /* All events are read, since one may record a retention; they are short. */
    bool is_event = record->size < 1536;
    if (every_signature || record->index >= checking->head.size ||
        (is_event && checking->report->first > 0))
        check_signature(checking, record, finding);
}

static void look_at_share(const struct checking *checking, unsigned worker, unsigned workers,
                          bool every_signature)
{
    for (size_t i = 0; i < checking->record_count; i++)
        if (i / STRIPE % workers == worker)
            look_at(checking, i, every_signature);
}

int verify_records(struct checking *checking, bool every_signature, error *err)
{
    unsigned workers = checking->order->workers;
    pid_t children[WORKERS_MAX];
    unsigned started = 0;
    if (workers > WORKERS_MAX)
        workers = WORKERS_MAX;
    if (workers == 0 || checking->record_count < STRIPE)
        workers = 1;
    for (; started + 1 < workers; started++) {
        children[started] = fork();
        if (children[started] == 0) {
            look_at_share(checking, started, workers, every_signature);
            _exit(0);
        }
        if (children[started] < 0)
            break;
    }
    for (unsigned own = started; own < workers; own++)
        look_at_share(checking, own, workers, every_signature);
    int result = 0;
    for (unsigned i = 0; i < started; i++) {
        int status = -1;
        while (waitpid(children[i], &status, 0) < 0 && errno == EINTR)
            ;
        if (status != 0)
            result = fail(err, ERR_INTERNAL, "a process that checked records has died");
    }
    return result;
}
