/* receipt_check.c - see receipt_check.h. */
#include "cli/common/receipt_check.h"

#include "base/cleanup.h"
#include "cli/common/log_head.h"
#include "ledger/merkle.h"

#include <fcntl.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int receipt_keys_read(const struct log_arguments *arguments, struct receipt_keys *ret_keys,
                      error *err)
{
    struct receipt_keys *keys = ret_keys;
    int folder = -1;
    error none;
    if (log_folder_open(arguments, &folder, err) < 0 && arguments->log)
        return -1;
    auto_fd owned = folder;
    if (arguments->log && faccessat(owned, "key.pub", F_OK, 0) < 0)
        return fail_os(err, "'%s' is no log: open its file key.pub", arguments->log);
    if (log_key_read(arguments, arguments->key ? -1 : owned, &keys->key, &keys->is_own, err) < 0)
        return -1;
    if (owned < 0 || key_chain_read(owned, &keys->chain, &none) < 0)
        keys->chain.count = 0;
    int number = key_chain_number(&keys->chain, keys->key.id);
    if (number < 0)
        keys->chain.count = 0; /* that of another log */
    keys->chain.min = number > 0 && !keys->is_own ? (size_t) number : 0;
    return 0;
}

/* Checks that the key that signed it is one of the log's, and the one for the receipt's position: a
 * retired key that was stolen later must not sign later records. */
static int check_signature(const struct found_receipt *found, const struct receipt_keys *keys,
                           struct receipt_standing *standing, error *err)
{
    const struct key_chain *chain = &keys->chain;
    int number = key_chain_number(chain, found->envelope.key_id);
    standing->signer =
        number >= (int) chain->min ? key_chain_key(chain, (size_t) number) : &keys->key;
    if (envelope_check(&found->envelope, standing->signer, err) < 0)
        return -1;
    if (!payload_place(&found->envelope.payload, &standing->place))
        return fail(err, ERR_POLICY, "it does not say where in the log it stands");
    if (chain->count == 0)
        return 0;
    size_t wanted = key_chain_number_at(chain, standing->place.index);
    if (wanted != (size_t) number)
        return fail(err, ERR_POLICY,
                    "it says that it is record %" PRIu64
                    " of the log, which another key signs, %s; the key that has signed it, %s, %s "
                    "record %" PRIu64,
                    standing->place.index, key_chain_key(chain, wanted)->label,
                    standing->signer->label,
                    (size_t) number < wanted ? "was retired with" : "came into force after",
                    chain->links[(size_t) number < wanted ? number : number - 1].index);
    standing->is_retired = (size_t) number < chain->count;
    return 0;
}

static bool is_of_newest_key(const struct receipt_keys *keys, const char *checkpoint)
{
    const struct key_chain *chain = &keys->chain;
    struct merkle_head head;
    error unused;
    const struct public_key *newest =
        chain->count > 0 ? key_chain_key(chain, chain->count) : &keys->key;
    return checkpoint_read(checkpoint, newest, &head, &unused) == 0;
}

/* Checks the proof that came with it: its hash and those of the proof must give the signed root. */
static int check_bundle(const struct found_receipt *found, const struct receipt_keys *keys,
                        struct receipt_standing *standing, error *err)
{
    struct merkle_head head;
    struct merkle_hash leaf;
    struct merkle_proof proof = { 0 };
    struct signed_place place;
    json_object *hashes = member_at(found->bundle, "inclusion");
    json_object *index = member_at(found->bundle, "index");
    const char *checkpoint = text_at(found->bundle, "checkpoint");
    if (key_chain_checkpoint(&keys->chain, &keys->key, checkpoint, &head, err) < 0)
        return under(err, "checkpoint");
    size_t count = json_object_is_type(hashes, json_type_array) ? json_object_array_length(hashes)
                                                                : MERKLE_PROOF_MAX + 1;
    if (count > MERKLE_PROOF_MAX || !payload_place(&found->envelope.payload, &place) ||
        !json_object_is_type(index, json_type_int) ||
        json_object_get_int64(index) != (int64_t) place.index)
        return fail(err, ERR_POLICY, "inclusion: no proof for the place that the receipt names");
    for (size_t i = 0; i < count; i++) {
        const char *hex = json_object_get_string(json_object_array_get_idx(hashes, i));
        if (!hex || strlen(hex) != MERKLE_HEX_SIZE ||
            strspn(hex, "0123456789abcdef") != MERKLE_HEX_SIZE ||
            sodium_hex2bin(proof.hashes[i].bytes, MERKLE_HASH_SIZE, hex, strlen(hex), NULL, NULL,
                           NULL) != 0)
            return fail(err, ERR_POLICY, "inclusion: hash %zu is none", i);
        proof.count++;
    }
    merkle_leaf(found->text.data, found->text.size, &leaf);
    if (!merkle_is_included(&leaf, place.index, &head, &proof))
        return fail(err, ERR_POLICY,
                    "inclusion: the proof does not lead from this receipt to the "
                    "checkpoint's root");
    standing->size = head.size;
    standing->is_vouched = standing->is_retired && is_of_newest_key(keys, checkpoint);
    return 0;
}

/* Compares the receipt with the log at its position, since a retired key that was stolen later can
 * sign records of its time. Uses the hashes of the log, which outlive retention. */
static int check_place(int folder, const struct found_receipt *found,
                       const struct receipt_keys *keys, struct receipt_standing *standing,
                       error *err)
{
    int tree_file = openat(folder, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_fd tree_owned = tree_file;
    if (tree_owned < 0)
        return 0;
    struct merkle_tree tree = { .read = log_hash_read, .context = &tree_file };
    struct merkle_hash leaf, stored;
    struct merkle_proof proof;
    uint64_t index = standing->place.index;
    error none;
    merkle_leaf(found->text.data, found->text.size, &leaf);
    if (log_hash_read(&tree_file, merkle_position(0, index), &stored, &none) < 0 ||
        !merkle_equal(&leaf, &stored))
        return fail(err, ERR_POLICY,
                    "record %" PRIu64 " of the log is another one; %s, which has signed this, %s",
                    index, standing->signer->label,
                    standing->is_retired ? "is retired" : "has signed two of them");
    auto_signed_head checkpoint = { 0 };
    if (log_checkpoint_read(folder, &keys->key, &checkpoint, &none) < 0 ||
        checkpoint.head.size <= index || !is_of_newest_key(keys, checkpoint.text))
        return 0;
    if (merkle_inclusion(&tree, index, checkpoint.head.size, &proof, err) < 0)
        return -1;
    if (!merkle_is_included(&leaf, index, &checkpoint.head, &proof))
        return fail(err, ERR_POLICY,
                    "the log's hashes do not lead from it to the root that was signed; glovebox "
                    "log verify names what is wrong");
    standing->size = checkpoint.head.size;
    standing->is_vouched = true;
    return 0;
}

static int check_log(const struct log_arguments *arguments, const struct found_receipt *found,
                     const struct receipt_keys *keys, struct receipt_standing *standing, error *err)
{
    int folder = -1;
    error none;
    if (!standing->is_retired && !arguments->log)
        return 0;
    if (log_folder_open(arguments, &folder, &none) < 0)
        return 0;
    auto_fd owned = folder;
    return check_place(owned, found, keys, standing, err);
}

int receipt_check(const struct log_arguments *arguments, const struct found_receipt *found,
                  const struct receipt_keys *keys, struct receipt_standing *ret_standing,
                  error *err)
{
    *ret_standing = (struct receipt_standing){ 0 };
    return check_signature(found, keys, ret_standing, err) < 0 ||
                   (found->bundle && check_bundle(found, keys, ret_standing, err) < 0)
               ? -1
               : check_log(arguments, found, keys, ret_standing, err);
}

int receipt_demand(const struct log_arguments *arguments, const struct found_receipt *found,
                   bool *ret_key_is_own, error *err)
{
    static struct receipt_keys keys; /* the chain makes it large */
    struct receipt_standing standing;
    if (receipt_keys_read(arguments, &keys, err) < 0)
        return -1;
    *ret_key_is_own = keys.is_own;
    return receipt_check(arguments, found, &keys, &standing, err) < 0 ? RECEIPT_IS_NONE : 0;
}

int receipt_print_unverified(bool json, const error *cause)
{
    if (json) {
        auto_json whole = json_object_new_object();
        (void) json_object_object_add(whole, "verified", json_object_new_boolean(false));
        (void) json_object_object_add(whole, "why", json_object_new_string(cause->text));
        (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
    } else {
        (void) printf("DOES NOT VERIFY: %s\n", cause->text);
    }
    return EXIT_DOES_NOT_VERIFY;
}
