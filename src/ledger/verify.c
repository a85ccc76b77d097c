/* verify.c - verifies a log: finds its records, hashes them in parallel processes
 * (verify_records.c), then checks the tree over them. */
#include "ledger/verify_internal.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "ledger/witness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* --- the tree over them ----------------------------------------------------------------------- */

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
        checking_problem(
            checking, what,
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
        checking_record_problem(checking, index, "was changed: its bytes do not fit their check");
    if (!finding->is_checked)
        return;
    if (finding->is_no_envelope) {
        checking_record_problem(checking, index, "is no envelope of glovebox");
        return;
    }
    checking->report->forged += finding->is_forged;
    if (finding->is_forged)
        checking_record_problem(checking, index, "was changed, or signed by another key");
    merkle_edge_root(edge, &root);
    if (finding->has_no_place) {
        checking_record_problem(checking, index, "does not say where in the log it stands");
    } else if (finding->place.index != index) {
        (void) snprintf(why, sizeof why,
                        "was signed as record %" PRIu64
                        ": records were removed, added or reordered",
                        finding->place.index);
        checking_record_problem(checking, index, why);
    } else if (!checking->has_gap && !merkle_equal(&finding->place.root_before, &root)) {
        checking_record_problem(
            checking, index, "was signed behind other records than those that stand before it now");
    }
}

/* The stored hashes must be those of the records: the leaf, and each subtree that it completes. */
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
        checking_problem(checking, what, is_missing ? "is missing" : "is not that of the records");
        checking->tree_is_told = !checking->is_quiet; /* since one wrong leaf changes many hashes */
    }
}

static int build_tree(struct checking *checking, error *err)
{
    struct merkle_tree tree = { .read = read_tree, .context = &checking->tree };
    struct merkle_edge edge;
    struct merkle_hash hashes[MERKLE_GROWTH_MAX];
    struct verify_report *report = checking->report;
    if (merkle_edge_load(&tree, report->first, &edge, err) < 0) {
        checking_problem(checking, "tree", err->text);
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
        checking_range_problem(checking, report->size, checking->head.size,
                               "missing: the log was cut off (its checkpoint counts it)");
    else if (report->size < checking->kept.size)
        checking_range_problem(checking, report->size, checking->kept.size,
                               "missing: the checkpoint that was kept counts it");
    if (report->first > report->trimmed)
        checking_range_problem(checking, report->trimmed, report->first,
                               "missing, and no event of the log says that retention took it");
    uint64_t stored = merkle_stored(report->size) * MERKLE_HASH_SIZE;
    if (checking->tree.size > stored)
        checking_problem(checking, "tree", "holds hashes of records that are not there");
}

/* --- the whole log ---------------------------------------------------------------------------- */

static void read_heads(struct checking *checking)
{
    char text[CHECKPOINT_NOTE_MAX + 1];
    const struct verify_order *order = checking->order;
    error err;
    if (read_text_at(order->folder, "checkpoint", text, sizeof text) < 0)
        checking_problem(checking, "checkpoint", "is missing");
    else if (key_chain_checkpoint(checking->chain, order->key, text, &checking->head, &err) < 0)
        checking_problem(checking, "checkpoint", err.text);
    if (checking->head.size > 0) /* its signature covers earlier changes of key */
        checking->chain->min = 0;
    if (order->kept &&
        key_chain_checkpoint(checking->chain, order->key, order->kept, &checking->kept, &err) < 0) {
        checking->report->unfit++;
        checking_problem(checking, "checkpoint that was kept", err.text);
    }
    checking->report->covered = checking->head.size;
    checking->report->kept = checking->kept.size;
}

static int map_tree(struct checking *checking, error *err)
{
    auto_fd file = openat(checking->order->folder, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file >= 0)
        return segment_map(file, &checking->tree, err);
    checking_problem(checking, "tree", "is missing");
    return 0;
}

/* The keys of the log, from the given one on. */
static void read_keys(struct checking *checking)
{
    struct key_chain *chain = checking->chain;
    error err;
    if (key_chain_read(checking->order->folder, chain, &err) < 0) {
        checking_problem(checking, "key.chain", err.text);
        chain->count = 0;
    }
    int number = key_chain_number(chain, checking->order->key->id);
    if (chain->count > 0 && number < 0) {
        checking_problem(checking, "key", "is none of those that this log has had");
        chain->count = 0;
    }
    chain->min = number > 0 ? (size_t) number : 0;
}

/* Every change of key in the file key.chain must also be in the log. */
static void compare_links(const struct checking *checking)
{
    const struct key_chain *chain = checking->chain;
    for (size_t i = 0; i < chain->count; i++) {
        const struct chain_link *link = &chain->links[i];
        bool is_there = link->index < checking->report->first; /* retention deleted it */
        for (size_t at = 0; !is_there && at < checking->record_count; at++)
            is_there = checking->records[at].index == link->index &&
                       merkle_equal(&checking->findings[at].leaf, &link->leaf);
        if (!is_there)
            checking_record_problem(checking, link->index,
                                    "is not the change of key that key.chain tells of");
    }
}

/* Every checkpoint that a witness has must be one of this log. */
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
            checking_problem(checking, what, err.text);
    }
    if (checking->report->witnessed > 0)
        return;
    checking->report->unfit++;
    checking_problem(checking, "witness",
                     given->witness_size > 0 ? "it has no checkpoint of this log"
                                             : "the file is empty: nothing was handed to it yet");
}

static int check(struct checking *checking, error *err)
{
    struct verify_report *report = checking->report;
    read_keys(checking);
    read_heads(checking);
    if (map_tree(checking, err) < 0 || verify_walk_segments(checking, err) < 0)
        return -1;
    size_t size = (checking->record_count + 1) * sizeof *checking->findings;
    checking->findings =
        mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (checking->findings == MAP_FAILED) {
        checking->findings = NULL;
        return fail_os(err, "make room to check %zu records", checking->record_count);
    }
    uint64_t told = report->problems;
    bool every = checking->order->every_signature || told > 0, had_gap = checking->has_gap;
    checking->is_quiet = !every;
    if (verify_records(checking, every, err) < 0 || build_tree(checking, err) < 0)
        return -1;
    if (checking->is_quiet && report->problems > 0) {
        checking->is_quiet = false;
        checking->has_gap = had_gap;
        report->problems = report->signatures = report->forged = 0;
        if (verify_records(checking, true, err) < 0 || build_tree(checking, err) < 0)
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
