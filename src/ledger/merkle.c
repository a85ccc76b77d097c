/* merkle.c - the hash of a range of leaves is that of a stored subtree, or is made of the two parts
 * into which the RFC splits the range. */
#include "ledger/merkle.h"

#include "ledger/sha256.h"

#include <string.h>

enum { LEAF_MARK = 0, NODE_MARK = 1 };

void merkle_leaf(const void *data, size_t size, struct merkle_hash *ret)
{
    static const unsigned char mark = LEAF_MARK;
    struct sha256 state;
    sha256_begin(&state);
    sha256_add(&state, &mark, 1);
    sha256_add(&state, data, size);
    sha256_end(&state, ret->bytes);
}

void merkle_node(const struct merkle_hash *left, const struct merkle_hash *right,
                 struct merkle_hash *ret)
{
    unsigned char text[1 + 2 * MERKLE_HASH_SIZE] = { NODE_MARK };
    memcpy(text + 1, left->bytes, MERKLE_HASH_SIZE);
    memcpy(text + 1 + MERKLE_HASH_SIZE, right->bytes, MERKLE_HASH_SIZE);
    sha256_of(text, sizeof text, ret->bytes);
}

bool merkle_equal(const struct merkle_hash *left, const struct merkle_hash *right)
{
    return memcmp(left->bytes, right->bytes, MERKLE_HASH_SIZE) == 0;
}

/* A subtree is stored after the leaf that completes it, and after its lower levels. */
uint64_t merkle_position(unsigned level, uint64_t number)
{
    uint64_t last_leaf = ((number + 1) << level) - 1;
    return merkle_stored(last_leaf) + level;
}

/* Each leaf, each pair, each four …: n + n/2 + n/4 + … */
uint64_t merkle_stored(uint64_t size)
{
    uint64_t stored = 0;
    for (; size > 0; size >>= 1)
        stored += size;
    return stored;
}

int merkle_edge_load(const struct merkle_tree *tree, uint64_t size, struct merkle_edge *ret_edge,
                     error *err)
{
    struct merkle_edge edge = { .size = size };
    for (unsigned level = 0; level < 64; level++)
        if (size >> level & 1 &&
            tree->read(tree->context, merkle_position(level, (size >> level) - 1),
                       &edge.subtrees[level], err) < 0)
            return -1;
    *ret_edge = edge;
    return 0;
}

void merkle_edge_root(const struct merkle_edge *edge, struct merkle_hash *ret)
{
    bool has_any = false;
    sha256_of(NULL, 0, ret->bytes); /* the root of an empty tree */
    for (unsigned level = 0; level < 64; level++) {
        if (!(edge->size >> level & 1))
            continue;
        if (has_any)
            merkle_node(&edge->subtrees[level], ret, ret);
        else
            *ret = edge->subtrees[level];
        has_any = true;
    }
}

size_t merkle_edge_add(struct merkle_edge *edge, const struct merkle_hash *leaf,
                       struct merkle_hash ret_hashes[MERKLE_GROWTH_MAX])
{
    size_t count = 0;
    ret_hashes[count++] = *leaf;
    unsigned level = 0;
    for (; edge->size >> level & 1; level++, count++)
        merkle_node(&edge->subtrees[level], &ret_hashes[count - 1], &ret_hashes[count]);
    edge->subtrees[level] = ret_hashes[count - 1];
    edge->size++;
    return count;
}

/* The largest power of two below `size`, which is above 1. */
static uint64_t split(uint64_t size)
{
    return UINT64_C(1) << (63 - __builtin_clzll(size - 1));
}

/* Hashes `size` leaves from `first` on, a multiple of a power of two that `size` does not exceed.
 * For each bit of `size` a subtree is stored, the largest first; joined from the last on. */
static int hash_range(const struct merkle_tree *tree, uint64_t first, uint64_t size,
                      struct merkle_hash *ret, error *err)
{
    unsigned smallest = (unsigned) __builtin_ctzll(size);
    for (unsigned level = smallest; level < 64; level++) {
        struct merkle_hash subtree;
        uint64_t before = level < 63 ? size >> (level + 1) << (level + 1) : 0;
        if (!(size >> level & 1))
            continue;
        if (tree->read(tree->context, merkle_position(level, (first + before) >> level), &subtree,
                       err) < 0)
            return -1;
        if (level == smallest)
            *ret = subtree;
        else
            merkle_node(&subtree, ret, ret);
    }
    return 0;
}

int merkle_root(const struct merkle_tree *tree, uint64_t size, struct merkle_hash *ret, error *err)
{
    if (size > 0)
        return hash_range(tree, 0, size, ret, err);
    sha256_of(NULL, 0, ret->bytes);
    return 0;
}

static void reverse(struct merkle_proof *proof)
{
    for (size_t i = 0; i < proof->count / 2; i++) {
        struct merkle_hash other = proof->hashes[i];
        proof->hashes[i] = proof->hashes[proof->count - 1 - i];
        proof->hashes[proof->count - 1 - i] = other;
    }
}

static int add_range(const struct merkle_tree *tree, uint64_t first, uint64_t size,
                     struct merkle_proof *proof, error *err)
{
    if (proof->count == MERKLE_PROOF_MAX)
        return fail(err, ERR_INTERNAL, "a proof of more than %d hashes", MERKLE_PROOF_MAX);
    return hash_range(tree, first, size, &proof->hashes[proof->count++], err);
}

int merkle_inclusion(const struct merkle_tree *tree, uint64_t index, uint64_t size,
                     struct merkle_proof *ret, error *err)
{
    ret->count = 0;
    if (index >= size)
        return fail(err, ERR_NOT_FOUND, "the log has no record %llu yet; it has %llu",
                    (unsigned long long) index, (unsigned long long) size);
    for (uint64_t first = 0; size > 1;) {
        uint64_t half = split(size);
        bool is_left = index - first < half;
        uint64_t other = is_left ? first + half : first;
        if (add_range(tree, other, is_left ? size - half : half, ret, err) < 0)
            return -1;
        first = is_left ? first : first + half;
        size = is_left ? half : size - half;
    }
    reverse(ret); /* collected from the root down; a proof goes from the leaf up */
    return 0;
}

/* SUBPROOF of the RFC: follows the path to the end of the old tree. */
int merkle_consistency(const struct merkle_tree *tree, uint64_t from, uint64_t to,
                       struct merkle_proof *ret, error *err)
{
    ret->count = 0;
    if (from > to)
        return fail(err, ERR_NOT_FOUND, "the log had %llu records later than %llu",
                    (unsigned long long) from, (unsigned long long) to);
    if (from == 0 || from == to)
        return 0;
    uint64_t first = 0, size = to, old = from;
    bool is_whole = true; /* the old tree's root is known to the caller */
    while (old != size) {
        uint64_t half = split(size);
        bool is_left = old <= half;
        uint64_t other = is_left ? first + half : first;
        if (add_range(tree, other, is_left ? size - half : half, ret, err) < 0)
            return -1;
        if (is_left) {
            size = half;
        } else {
            first += half;
            size -= half;
            old -= half;
            is_whole = false;
        }
    }
    if (!is_whole && add_range(tree, first, size, ret, err) < 0)
        return -1;
    reverse(ret);
    return 0;
}

bool merkle_is_included(const struct merkle_hash *leaf, uint64_t index,
                        const struct merkle_head *head, const struct merkle_proof *proof)
{
    if (index >= head->size)
        return false;
    uint64_t number = index, last = head->size - 1;
    struct merkle_hash at = *leaf;
    for (size_t i = 0; i < proof->count; i++) {
        if (last == 0)
            return false;
        if (number & 1 || number == last) {
            merkle_node(&proof->hashes[i], &at, &at);
            while (!(number & 1) && number != 0) {
                number >>= 1;
                last >>= 1;
            }
        } else {
            merkle_node(&at, &proof->hashes[i], &at);
        }
        number >>= 1;
        last >>= 1;
    }
    return last == 0 && merkle_equal(&at, &head->root);
}
