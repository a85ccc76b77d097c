/* merkle.h - a Merkle tree over a growing list, hashed as in RFC 9162 (and RFC 6962).
 *
 * Every final hash is stored once, in the order in which it becomes known: a leaf, then each
 * subtree that it completes. A root or a proof reads a few of them (2 * log2(n)). The caller stores
 * the hashes, and passes a function that reads them.
 *
 *   See  RFC 9162, section 2.1 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MERKLE_HASH_SIZE = 32, MERKLE_HEX_SIZE = 64, MERKLE_PROOF_MAX = 128 };

struct merkle_hash {
    unsigned char bytes[MERKLE_HASH_SIZE];
};

struct merkle_proof {
    size_t count;
    struct merkle_hash hashes[MERKLE_PROOF_MAX];
};

/* Reads stored hash number `position`. */
typedef int merkle_reader(void *context, uint64_t position, struct merkle_hash *ret, error *err);

struct merkle_tree {
    merkle_reader *read;
    void *context;
};

void merkle_leaf(const void *data, size_t size, struct merkle_hash *ret);
void merkle_node(const struct merkle_hash *left, const struct merkle_hash *right,
                 struct merkle_hash *ret);

/* The position of the `number`th subtree of 2^level leaves, and the number of hashes that are
 * stored for `size` leaves. */
uint64_t merkle_position(unsigned level, uint64_t number);
uint64_t merkle_stored(uint64_t size);

/* The right edge of a tree: enough to add leaves and to compute the root, without reading. */
struct merkle_edge {
    uint64_t size;
    struct merkle_hash subtrees[64]; /* of 2^i leaves, where bit i of `size` is set */
};

int merkle_edge_load(const struct merkle_tree *tree, uint64_t size, struct merkle_edge *ret_edge,
                     error *err);
void merkle_edge_root(const struct merkle_edge *edge, struct merkle_hash *ret);

/* Adds a leaf. Gives  ret_hashes, the leaf first, which the caller stores from position
 * merkle_stored(old size) on. Returns how many. */
enum { MERKLE_GROWTH_MAX = 65 };
size_t merkle_edge_add(struct merkle_edge *edge, const struct merkle_hash *leaf,
                       struct merkle_hash ret_hashes[MERKLE_GROWTH_MAX]);

/* The root of the first `size` leaves; for 0, the hash of an empty string. */
int merkle_root(const struct merkle_tree *tree, uint64_t size, struct merkle_hash *ret, error *err);

/* Fails  ERR_NOT_FOUND  if index >= size, or from > to. */
int merkle_inclusion(const struct merkle_tree *tree, uint64_t index, uint64_t size,
                     struct merkle_proof *ret, error *err);
int merkle_consistency(const struct merkle_tree *tree, uint64_t from, uint64_t to,
                       struct merkle_proof *ret, error *err);

/* The number of leaves of a tree, and its root. */
struct merkle_head {
    uint64_t size;
    struct merkle_hash root;
};

bool merkle_is_included(const struct merkle_hash *leaf, uint64_t index,
                        const struct merkle_head *head, const struct merkle_proof *proof);
bool merkle_equal(const struct merkle_hash *left, const struct merkle_hash *right);
