/* verify.c - first where the records lie, then (side by side, in processes) what they hash to, then
 * the tree over them. */
#include "ledger/verify.h"

#include "base/cleanup.h"
#include "ledger/chain.h"
#include "ledger/envelope.h"
#include "ledger/segment.h"
#include "ledger/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

enum { STRIPE = 64, WORKERS_MAX = 64 };

/* What a worker found out about one record; shared between processes. */
struct finding {
    struct merkle_hash leaf;
    struct signed_place place;
    uint64_t trimmed;
    bool is_changed; /* it does not fit its check */
    bool is_no_envelope, is_forged, has_no_place;
    bool is_checked; /* its signature was */
};

struct checking {
    const struct verify_order *order;
    struct verify_report *report;
    size_t segment_count;
    struct segment *segments;
    size_t record_count, record_room;
    struct record *records;
    struct finding *findings; /* as many */
    struct segment tree;
    struct merkle_head head; /* of the checkpoint; size 0: there is none that can be believed */
    struct merkle_head kept;
    struct key_chain *chain;
    bool is_quiet; /* something may be wrong: it is looked at again, to name it */
    bool tree_is_told;
    bool has_gap; /* indices jump: no root can be computed beyond */
};

static void problem(const struct checking *checking, const char *what, const char *why)
{
    checking->report->problems++;
    if (!checking->is_quiet)
        checking->order->problem(checking->order->context, what, why);
}

static void record_problem(const struct checking *checking, uint64_t index, const char *why)
{
    char what[40];
    (void) snprintf(what, sizeof what, "record %" PRIu64, index);
    problem(checking, what, why);
}

static void range_problem(const struct checking *checking, uint64_t first, uint64_t end,
                          const char *why)
{
    char what[64];
    if (end == first + 1) {
        record_problem(checking, first, why);
        return;
    }
    (void) snprintf(what, sizeof what, "records %" PRIu64 " to %" PRIu64, first, end - 1);
    problem(checking, what, why);
}

/* --- where the records lie ----------------------------------------------------------------------
 */

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

/* A frame that says another index than it should is believed if what follows it counts on, or, at
 * the end, if the checkpoint knows so many: else its index is what was damaged. */
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

/* Finds the next frame behind damage, so that what follows is looked at too. */
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
        range_problem(checking, damaged, *index > damaged ? *index : damaged + 1,
                      goes_on && *index == damaged
                          ? "bytes that belong to no record stand before it"
                          : "its frame is damaged, torn or removed");
        if (!goes_on) {
            ++*index;
            return 0;
        }
    }
}

static int walk_segments(struct checking *checking, error *err)
{
    uint64_t *firsts = NULL;
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
            range_problem(checking, index, firsts[i], "missing: no segment holds it");
            checking->has_gap = true;
        } else if (firsts[i] < index) {
            problem(checking, name, "begins with a record that another segment holds");
        }
        index = firsts[i];
        result = walk_segment(checking, segment, &index, err);
    }
    free(firsts);
    checking->report->size = index;
    return result;
}

/* --- what they hash to --------------------------------------------------------------------------
 */

static bool after(const char **at, const char *end, const char *words)
{
    size_t size = strlen(words);
    const char *found = memmem(*at, (size_t) (end - *at), words, size);
    if (found)
        *at = found + size;
    return found;
}

/* Canonical JSON: a quote inside of a text has a backslash before it, so these words stand only
 * where the member itself stands. */
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

/* The first record that is kept, if this tells of older ones that are not; else `otherwise`. */
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
    struct envelope envelope;
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
    envelope_done(&envelope);
}

static void look_at(const struct checking *checking, size_t number, bool every_signature)
{
    const struct record *record = &checking->records[number];
    struct finding *finding = &checking->findings[number];
    finding->is_changed = !record_is_whole(record, &finding->leaf);
    /* Retention is told behind the newest segment's beginning: events are short, look at them all.
     */
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

static int look_at_all(struct checking *checking, bool every_signature, error *err)
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

/* --- the tree over them -------------------------------------------------------------------------
 */

static int read_tree(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    const struct segment *tree = context;
    if ((position + 1) * MERKLE_HASH_SIZE > tree->size)
        return fail(err, ERR_NOT_FOUND, "the file 'tree' ends before hash %" PRIu64, position);
    memcpy(ret->bytes, tree->data + position * MERKLE_HASH_SIZE, MERKLE_HASH_SIZE);
    return 0;
}

static void compare_root(const struct checking *checking, const struct merkle_edge *edge,
                         const struct merkle_head *head, const char *what)
{
    struct merkle_hash root;
    merkle_edge_root(edge, &root);
    if (head->size > 0 && edge->size == head->size && !merkle_equal(&root, &head->root))
        problem(checking, what,
                "the records do not have the root that was signed: one was changed, removed or put "
                "elsewhere");
}

static void tell_findings(const struct checking *checking, const struct record *record,
                          const struct finding *finding, const struct merkle_edge *edge)
{
    char why[160];
    struct merkle_hash root;
    uint64_t index = record->index;
    if (finding->is_changed)
        record_problem(checking, index, "was changed: its bytes do not fit their check");
    if (!finding->is_checked)
        return;
    if (finding->is_no_envelope) {
        record_problem(checking, index, "is no envelope of glovebox");
        return;
    }
    checking->report->forged += finding->is_forged;
    if (finding->is_forged)
        record_problem(checking, index, "was changed, or signed by another key");
    merkle_edge_root(edge, &root);
    if (finding->has_no_place) {
        record_problem(checking, index, "does not say where in the log it stands");
    } else if (finding->place.index != index) {
        (void) snprintf(why, sizeof why,
                        "was signed as record %" PRIu64
                        ": records were removed, added or reordered",
                        finding->place.index);
        record_problem(checking, index, why);
    } else if (!checking->has_gap && !merkle_equal(&finding->place.root_before, &root)) {
        record_problem(checking, index,
                       "was signed behind other records than those that stand before it now");
    }
}

/* The hashes that the log stores must be those of its records: the leaf, and what it completes. */
static void compare_stored(struct checking *checking, const struct merkle_edge *before,
                           const struct merkle_hash *hashes, size_t count, uint64_t index)
{
    error none;
    for (size_t i = 0; i < count && !checking->tree_is_told; i++) {
        struct merkle_hash stored;
        char what[64];
        uint64_t position = merkle_stored(before->size) + i;
        (void) snprintf(what, sizeof what, "tree, hash %" PRIu64 " (record %" PRIu64 ")", position,
                        index);
        bool is_missing = read_tree(&checking->tree, position, &stored, &none) < 0;
        if (is_missing ? index >= checking->head.size : merkle_equal(&stored, &hashes[i]))
            continue;
        problem(checking, what, is_missing ? "is missing" : "is not that of the records");
        checking->tree_is_told = !checking->is_quiet; /* one wrong leaf makes many wrong hashes */
    }
}

static int build_tree(struct checking *checking, error *err)
{
    struct merkle_tree tree = { .read = read_tree, .context = &checking->tree };
    struct merkle_edge edge;
    struct merkle_hash hashes[MERKLE_GROWTH_MAX];
    struct verify_report *report = checking->report;
    if (merkle_edge_load(&tree, report->first, &edge, err) < 0) {
        problem(checking, "tree", err->text);
        edge = (struct merkle_edge){ .size = report->first };
        checking->has_gap = true;
    }
    for (size_t i = 0; i < checking->record_count; i++) {
        const struct record *record = &checking->records[i];
        const struct finding *finding = &checking->findings[i];
        tell_findings(checking, record, finding, &edge);
        report->signatures += finding->is_checked;
        if (finding->trimmed > report->trimmed && !finding->is_forged)
            report->trimmed = finding->trimmed;
        if (checking->has_gap)
            continue;
        struct merkle_edge before = edge;
        size_t count = merkle_edge_add(&edge, &finding->leaf, hashes);
        compare_stored(checking, &before, hashes, count, record->index);
        compare_root(checking, &edge, &checking->head, "checkpoint");
        compare_root(checking, &edge, &checking->kept, "checkpoint that was kept");
    }
    return 0;
}

static void compare_ends(struct checking *checking)
{
    const struct verify_report *report = checking->report;
    if (report->size < checking->head.size)
        range_problem(checking, report->size, checking->head.size,
                      "missing: the log was cut off (its checkpoint counts it)");
    else if (report->size < checking->kept.size)
        range_problem(checking, report->size, checking->kept.size,
                      "missing: the checkpoint that was kept counts it");
    if (report->first > report->trimmed)
        range_problem(checking, report->trimmed, report->first,
                      "missing, and no event of the log says that retention took it");
    uint64_t stored = merkle_stored(report->size) * MERKLE_HASH_SIZE;
    if (checking->tree.size > stored)
        problem(checking, "tree", "holds hashes of records that are not there");
}

/* --- the whole ----------------------------------------------------------------------------------
 */

static void read_heads(struct checking *checking)
{
    char text[CHECKPOINT_NOTE_MAX + 1] = "";
    const struct verify_order *order = checking->order;
    error err;
    auto_fd file = openat(order->folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t got = file < 0 ? -1 : read(file, text, sizeof text - 1);
    text[got > 0 ? got : 0] = '\0';
    if (got < 0)
        problem(checking, "checkpoint", "is missing");
    else if (key_chain_checkpoint(checking->chain, order->key, text, &checking->head, &err) < 0)
        problem(checking, "checkpoint", err.text);
    if (checking->head.size > 0) /* it vouches for the changes of key that it covers */
        checking->chain->min = 0;
    if (order->kept &&
        key_chain_checkpoint(checking->chain, order->key, order->kept, &checking->kept, &err) < 0)
        problem(checking, "checkpoint that was kept", err.text);
    checking->report->covered = checking->head.size;
    checking->report->kept = checking->kept.size;
}

static int map_tree(struct checking *checking, error *err)
{
    auto_fd file = openat(checking->order->folder, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0)
        return segment_map(file, &checking->tree, err);
    problem(checking, "tree", "is missing");
    return 0;
}

/* The keys of the log, as far as the one that was given leads to them. */
static void read_keys(struct checking *checking)
{
    struct key_chain *chain = checking->chain;
    error err;
    if (key_chain_read(checking->order->folder, chain, &err) < 0) {
        problem(checking, "key.chain", err.text);
        chain->count = 0;
    }
    int number = key_chain_number(chain, checking->order->key->id);
    if (chain->count > 0 && number < 0) {
        problem(checking, "key", "is none of those that this log has had");
        chain->count = 0;
    }
    chain->min = number > 0 ? (size_t) number : 0;
}

/* What the file says stands in the log as well. */
static void compare_links(const struct checking *checking)
{
    const struct key_chain *chain = checking->chain;
    for (size_t i = 0; i < chain->count; i++) {
        const struct chain_link *link = &chain->links[i];
        bool is_there = link->index < checking->report->first; /* retention took it */
        for (size_t at = 0; !is_there && at < checking->record_count; at++)
            is_there = checking->records[at].index == link->index &&
                       merkle_equal(&checking->findings[at].leaf, &link->leaf);
        if (!is_there)
            record_problem(checking, link->index,
                           "is not the change of key that key.chain tells of");
    }
}

/* Every checkpoint that a witness has seen is one of this log. */
static void compare_witness(struct checking *checking)
{
    struct merkle_tree tree = { .read = read_tree, .context = &checking->tree };
    const struct verify_order *given = checking->order;
    const struct witness_order order = { checking->chain, given->key, &tree,
                                         checking->report->size };
    struct witness_note note;
    if (!given->witness)
        return;
    const char *at = given->witness, *end = at + given->witness_size;
    while (witness_next(&order, &at, end, &note)) {
        char what[64];
        error err;
        checking->report->witnessed++;
        (void) snprintf(what, sizeof what, "witness, checkpoint over %" PRIu64, note.records);
        if (witness_compare(&order, &note, &err) < 0)
            problem(checking, what, err.text);
    }
    if (checking->report->witnessed == 0)
        problem(checking, "witness", "it has no checkpoint of this log");
}

static int check(struct checking *checking, error *err)
{
    struct verify_report *report = checking->report;
    read_keys(checking);
    read_heads(checking);
    if (map_tree(checking, err) < 0 || walk_segments(checking, err) < 0)
        return -1;
    size_t size = (checking->record_count + 1) * sizeof *checking->findings;
    checking->findings =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (checking->findings == MAP_FAILED) {
        checking->findings = NULL;
        return fail_os(err, "make room to check %zu records", checking->record_count);
    }
    uint64_t told = report->problems;
    bool every = checking->order->every_signature || told > 0;
    bool had_gap = checking->has_gap;
    checking->is_quiet = !every;
    if (look_at_all(checking, every, err) < 0 || build_tree(checking, err) < 0)
        return -1;
    if (checking->is_quiet && report->problems > 0) {
        checking->is_quiet = false;
        checking->has_gap = had_gap;
        report->problems = report->signatures = report->forged = 0;
        if (look_at_all(checking, true, err) < 0 || build_tree(checking, err) < 0)
            return -1;
    }
    checking->is_quiet = false;
    compare_ends(checking);
    compare_links(checking);
    compare_witness(checking);
    return 0;
}

int log_verify(const struct verify_order *order, struct verify_report *ret_report, error *err)
{
    *ret_report = (struct verify_report){ 0 };
    struct checking checking = { .order = order,
                                 .report = ret_report,
                                 .chain = calloc(1, sizeof *checking.chain) };
    int result =
        checking.chain ? check(&checking, err) : fail(err, ERR_SYSTEM, "no memory for keys");
    free(checking.chain);
    for (size_t i = 0; i < checking.segment_count; i++)
        segment_unmap(&checking.segments[i]);
    segment_unmap(&checking.tree);
    if (checking.findings)
        (void) munmap(checking.findings, (checking.record_count + 1) * sizeof *checking.findings);
    free(checking.segments);
    free(checking.records);
    return result;
}
