/* verify_internal.h - what verify.c (the tree over the records, and the whole) and verify_records.c
 * (where the records lie, and what they hash to) share. */
#pragma once

#include "ledger/chain.h"
#include "ledger/segment.h"
#include "ledger/verify.h"

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

void checking_problem(const struct checking *checking, const char *what, const char *why);
void checking_record_problem(const struct checking *checking, uint64_t index, const char *why);
void checking_range_problem(const struct checking *checking, uint64_t first, uint64_t end,
                            const char *why);

/* Maps the segments and lists their records. */
int verify_walk_segments(struct checking *checking, error *err);

/* Fills in the findings, in processes side by side. */
int verify_records(struct checking *checking, bool every_signature, error *err);
