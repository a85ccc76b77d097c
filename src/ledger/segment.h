/* segment.h - a file of the log: a sequence of records, each with a frame before it.
 *
 *     magic u32 | size u32 | index u64 | check u8[8] | size bytes        (little endian)
 *
 * The index counts through all segments without a gap; a segment is named by its first index. The
 * check is the beginning of the record's leaf hash, which the tree needs anyway: it shows whether a
 * record is complete. */
#pragma once

#include "base/bytes.h"
#include "ledger/merkle.h"

enum { FRAME_SIZE = 24, RECORD_MAX = 4 * 1024 * 1024, SEGMENT_NAME_SIZE = 25 };

struct record {
    uint64_t index;
    uint64_t offset;  /* of its frame */
    const char *data; /* valid while the segment is mapped */
    size_t size;
    unsigned char check[8];
};

void frame_write(uint64_t index, size_t size, const struct merkle_hash *leaf,
                 unsigned char ret_frame[FRAME_SIZE]);

/* "00000000000000000042.log" */
void segment_name(uint64_t first, char ret_name[SEGMENT_NAME_SIZE]);

/* A segment, mapped for reading. */
struct segment {
    const char *data;
    size_t size;
};

int segment_map(int file, struct segment *ret_segment, error *err);
void segment_unmap(struct segment *segment);

enum { SEGMENT_RECORD = 0, SEGMENT_END = 1, SEGMENT_TORN = 2 };

/* Reads the frame at `offset`; its record must have this index. The check is not compared.
 * Returns SEGMENT_RECORD, SEGMENT_END (the end of the segment), SEGMENT_TORN (there is no complete
 * frame with that index). */
int segment_next(const struct segment *segment, uint64_t offset, uint64_t index,
                 struct record *ret_record);

/* Does the record fit its check? Gives its leaf hash. */
bool record_is_whole(const struct record *record, struct merkle_hash *ret_leaf);

/* Lists the segments of a log's folder, sorted. Gives *ret_firsts, which the caller frees. */
int segments_list(int folder, uint64_t **ret_firsts, size_t *ret_count, error *err);

/* Adds record `index` to `out`. Fails  ERR_NOT_FOUND  none, or retention deleted it. */
int segments_read(int folder, uint64_t index, struct bytes *out, error *err);

/* Calls `each` with every record from `from` on, in order, until it returns other than 0, which is
 * returned. Ends at the first incomplete frame. */
int segments_each(int folder, uint64_t from,
                  int (*each)(void *context, const struct record *record, error *err),
                  void *context, error *err);
