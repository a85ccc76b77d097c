/* merkle_test.c - the published values for RFC 6962 (the eight leaves of the tests of the
 * Certificate Transparency project), and every proof of small trees. */
#include "ledger/merkle.h"

#include "base/table.h"
#include "base/test.h"

#include <sodium.h>
#include <string.h>

enum { TREE_MAX = 40 };

static struct merkle_hash stored[2 * TREE_MAX + 8];
static struct merkle_hash leaves[TREE_MAX];

static int read_stored(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    (void) context;
    if (position >= COUNT_OF(stored))
        return fail(err, ERR_INTERNAL, "hash %llu", (unsigned long long) position);
    *ret = stored[position];
    return 0;
}

static const struct merkle_tree tree = { .read = read_stored };

/* Verifies as RFC 9162, section 2.1.4.2 says. */
static bool merkle_is_consistent(const struct merkle_head *from, const struct merkle_head *to,
                                 const struct merkle_proof *proof)
{
    if (from->size > to->size)
        return false;
    if (from->size == to->size || from->size == 0)
        return proof->count == 0 && (from->size == 0 || merkle_equal(&from->root, &to->root));
    bool is_power = (from->size & (from->size - 1)) == 0;
    if (!is_power && proof->count == 0)
        return false;
    size_t next = is_power ? 0 : 1;
    struct merkle_hash old = is_power ? from->root : proof->hashes[0];
    struct merkle_hash new = old;
    uint64_t number = from->size - 1, last = to->size - 1;
    for (; number & 1; number >>= 1)
        last >>= 1;
    for (; next < proof->count; next++) {
        if (last == 0)
            return false;
        const struct merkle_hash *hash = &proof->hashes[next];
        if (number & 1 || number == last) {
            merkle_node(hash, &old, &old);
            merkle_node(hash, &new, &new);
            while (!(number & 1) && number != 0) {
                number >>= 1;
                last >>= 1;
            }
        } else {
            merkle_node(&new, hash, &new);
        }
        number >>= 1;
        last >>= 1;
    }
    return last == 0 && merkle_equal(&old, &from->root) && merkle_equal(&new, &to->root);
}

static void hash_from(const char *hex, struct merkle_hash *ret)
{
    (void) sodium_hex2bin(ret->bytes, sizeof ret->bytes, hex, strlen(hex), NULL, NULL, NULL);
}

static bool is_hash(const struct merkle_hash *hash, const char *hex)
{
    struct merkle_hash wanted;
    hash_from(hex, &wanted);
    return merkle_equal(hash, &wanted);
}

/* The eight published leaves, followed by numbers. */
static void grow(struct merkle_edge *edge, size_t size)
{
    static const char *const published[] = {
        "",
        "00",
        "10",
        "2021",
        "3031",
        "40414243",
        "5051525354555657",
        "606162636465666768696a6b6c6d6e6f",
    };
    while (edge->size < size) {
        unsigned char data[32] = { (unsigned char) edge->size, 77 };
        size_t length = 2;
        if (edge->size < COUNT_OF(published)) {
            const char *hex = published[edge->size];
            (void) sodium_hex2bin(data, sizeof data, hex, strlen(hex), NULL, &length, NULL);
        }
        struct merkle_hash hashes[MERKLE_GROWTH_MAX];
        uint64_t place = merkle_stored(edge->size);
        merkle_leaf(data, length, &leaves[edge->size]);
        size_t count = merkle_edge_add(edge, &leaves[edge->size], hashes);
        memcpy(&stored[place], hashes, count * sizeof *hashes);
        require(merkle_stored(edge->size) == place + count, "%zu hashes for leaf %llu", count,
                (unsigned long long) edge->size);
    }
}

TEST(roots_are_those_published)
{
    static const char *const roots[] = {
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
        "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
        "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
        "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
        "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
        "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
    };
    struct merkle_edge edge = { 0 };
    for (size_t size = 0; size < COUNT_OF(roots); size++) {
        struct merkle_hash root;
        error err;
        grow(&edge, size);
        merkle_edge_root(&edge, &root);
        expect(is_hash(&root, roots[size]), "the root of %zu leaves, from the edge", size);
        expect(merkle_root(&tree, size, &root, &err) == 0 && is_hash(&root, roots[size]),
               "the root of %zu leaves, from the tree", size);
    }
}

static const struct {
    bool is_inclusion;
    uint64_t first, second;
    const char *hashes[4];
} published[] = {
    { true, 0, 1, { NULL } },
    { true,
      0,
      8,
      { "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4", NULL } },
    { true,
      5,
      8,
      { "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7", NULL } },
    { true, 2, 3, { "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125", NULL } },
    { true,
      1,
      5,
      { "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b", NULL } },
    { false, 1, 1, { NULL } },
    { false,
      1,
      8,
      { "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4", NULL } },
    { false,
      6,
      8,
      { "0ebc5d3437fbe2db158b9f126a1d118e308181031d0a949f8dededebc558ef6a",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7", NULL } },
    { false,
      2,
      5,
      { "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b", NULL } },
};

TEST(proofs_are_those_published)
{
    struct merkle_edge edge = { 0 };
    grow(&edge, 8);
    for_each(fact, published) {
        struct merkle_proof proof = { 0 };
        error err = { 0 };
        int made = (fact->is_inclusion ? merkle_inclusion : merkle_consistency)(
            &tree, fact->first, fact->second, &proof, &err);
        size_t count = 0;
        while (fact->hashes[count])
            count++;
        require(made == 0 && proof.count == count, "%llu, %llu: %zu hashes",
                (unsigned long long) fact->first, (unsigned long long) fact->second, proof.count);
        for (size_t i = 0; i < count; i++)
            expect(is_hash(&proof.hashes[i], fact->hashes[i]), "%llu, %llu: hash %zu",
                   (unsigned long long) fact->first, (unsigned long long) fact->second, i);
    }
}

TEST(every_proof_of_a_small_tree_holds_and_no_other)
{
    struct merkle_edge edge = { 0 };
    struct merkle_head heads[TREE_MAX + 1];
    error err;
    for (size_t size = 0; size <= TREE_MAX; size++) {
        grow(&edge, size);
        heads[size].size = size;
        merkle_edge_root(&edge, &heads[size].root);
    }
    struct merkle_proof proof;
    for (size_t size = 1; size <= TREE_MAX; size++)
        for (size_t index = 0; index < size; index++) {
            require(merkle_inclusion(&tree, index, size, &proof, &err) == 0, "%s", err.text);
            expect(merkle_is_included(&leaves[index], index, &heads[size], &proof),
                   "leaf %zu of %zu is not proved", index, size);
            expect(
                !merkle_is_included(&leaves[(index + 1) % TREE_MAX], index, &heads[size], &proof),
                "another leaf is proved as %zu of %zu", index, size);
            if (proof.count > 0)
                proof.hashes[proof.count / 2].bytes[31] ^= 1;
            expect(proof.count == 0 ||
                       !merkle_is_included(&leaves[index], index, &heads[size], &proof),
                   "a changed proof holds for %zu of %zu", index, size);
        }
    for (size_t to = 0; to <= TREE_MAX; to++)
        for (size_t from = 0; from <= to; from++) {
            require(merkle_consistency(&tree, from, to, &proof, &err) == 0, "%s", err.text);
            expect(merkle_is_consistent(&heads[from], &heads[to], &proof),
                   "%zu and %zu are not proved to be one log", from, to);
            struct merkle_head other = heads[from];
            other.root.bytes[0] ^= 1;
            expect(from == 0 || !merkle_is_consistent(&other, &heads[to], &proof),
                   "another log of %zu is proved for %zu", from, to);
        }
    expect(merkle_inclusion(&tree, 5, 5, &proof, &err) < 0, "a leaf behind the end was proved");
    expect(merkle_consistency(&tree, 6, 5, &proof, &err) < 0, "a later log was proved");
}

TEST(an_edge_is_found_again_in_the_tree)
{
    struct merkle_edge edge = { 0 };
    for (size_t size = 0; size <= TREE_MAX; size++) {
        struct merkle_edge loaded;
        struct merkle_hash root, again;
        error err;
        grow(&edge, size);
        require(merkle_edge_load(&tree, size, &loaded, &err) == 0, "%s", err.text);
        merkle_edge_root(&edge, &root);
        merkle_edge_root(&loaded, &again);
        expect(merkle_equal(&root, &again), "the edge of %zu", size);
    }
}

TESTS(CASE(roots_are_those_published), CASE(proofs_are_those_published),
      CASE(every_proof_of_a_small_tree_holds_and_no_other),
      CASE(an_edge_is_found_again_in_the_tree))
