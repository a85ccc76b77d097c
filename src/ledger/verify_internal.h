/* verify_internal.h - shared by verify.c (the tree, and the whole log) and verify_records.c
 * (finding and hashing records). */
#pragma once

#include "ledger/chain.h"
#include "ledger/segment.h"
#include "ledger/verify.h"

/* What a worker has found about one record; in memory that the processes share. */
struct finding {
    struct merkle_hash leaf;
    struct signed_place place;
    uint64_t trimmed;
    bool is_changed; /* it does not fit its check */
    bool is_no_envelope, is_forged, has_no_place;
    bool is_checked; /* its signature was checked */
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
    struct merkle_head head; /* of the checkpoint; size 0: there is no valid one */
    struct merkle_head kept;
    struct key_chain *chain;
    bool is_quiet; /* the first pass: if it finds a problem, a second one reports it */
    bool tree_is_told;
    bool has_gap; /* records are missing: no root can be computed after them */
};

void checking_problem(const struct checking *checking, const char *what, const char *why);
void checking_record_problem(const struct checking *checking, uint64_t index, const char *why);
void checking_range_problem(const struct checking *checking, uint64_t first, uint64_t end,
                            const char *why);

/* Maps the segments and lists their records. */
int verify_walk_segments(struct checking *checking, error *err);

/* Fills in the findings, in parallel processes. */
int verify_records(struct checking *checking, bool every_signature, error *err);
