/* list.h - lists in a receipt that a program or a caller can make long: the first rows, as long as
 * they are at most LIST_BYTES_MAX bytes; of a list that is longer also how many rows the whole has
 * and its SHA-256, so that a record is never larger than the log takes.
 *
 *   See  docs/receipts.md, "Long lists" */
#pragma once

#include "ledger/sha256.h"
#include "json/canonical_writer.h"

#include <sodium.h>

enum { LIST_BYTES_MAX = 32 * 1024, LISTS_MAX = 12 };

/* A list that is not whole in the receipt. */
struct list_rest {
    const char *name;
    uint64_t count;                /* rows of the whole */
    char sha256[SHA256_TEXT_SIZE]; /* "": its rows are not known any more */
};

/* All lists of one receipt. */
struct lists {
    struct jcs *json;
    size_t bytes_max; /* of each */
    size_t cut_count;
    struct list_rest cut[LISTS_MAX];
};

/* One that is being written. */
struct list {
    struct lists *lists;
    const char *name;
    size_t start, end; /* of the rows that are listed, in the JSON */
    uint64_t count, listed;
    bool is_cut;
    struct sha256 hash;
};

/* `name` is the list's in the member `shortened`, `key` that of the list itself. */
void list_begin(struct lists *lists, const char *name, const char *key, struct list *ret_list);
void list_row(struct list *list); /* a row has been written as the next value */
void list_end(struct list *list); /* Gives  list->listed, the rows that stand there */

/* A list of so many rows, of which none is known any more. */
void list_unknown(struct lists *lists, const char *name, const char *key, uint64_t count);

/* The member `shortened`. */
void lists_write(const struct lists *lists);
