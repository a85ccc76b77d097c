/* list.h - lists in a receipt that a program or a caller can make long: the first rows, up to
 * LIST_BYTES_MAX bytes; for a longer list also its number of rows and its SHA-256. So a record
 * never exceeds the log's limit.
 *
 *   See  docs/receipts.md, "Long lists" */
#pragma once

#include "ledger/sha256.h"
#include "json/canonical_writer.h"

#include <sodium.h>

enum { LIST_BYTES_MAX = 32 * 1024, LISTS_MAX = 12 };

/* A list that is not complete in the receipt. */
struct list_rest {
    const char *name;
    uint64_t count;                /* rows of the complete list */
    char sha256[SHA256_TEXT_SIZE]; /* "": its rows are not known any more */
};

/* All lists of one receipt. */
struct lists {
    struct jcs *json;
    size_t bytes_max; /* of each */
    size_t cut_count;
    struct list_rest cut[LISTS_MAX];
};

/* The list that is being written. */
struct list {
    struct lists *lists;
    const char *name;
    size_t start, end; /* of the rows that are listed, in the JSON */
    uint64_t count, listed;
    bool is_cut;
    struct sha256 hash;
};

/* `name` is its name in the member `shortened`, `key` the key of the list itself. */
void list_begin(struct lists *lists, const char *name, const char *key, struct list *ret_list);
void list_row(struct list *list); /* a row has been written as the next value */
void list_end(struct list *list); /* Gives  list->listed, the rows in the receipt */

/* A list of `count` rows that are not known any more. */
void list_unknown(struct lists *lists, const char *name, const char *key, uint64_t count);

/* The member `shortened`. */
void lists_write(const struct lists *lists);
