/* receipt.c - `glovebox receipt`: shows and verifies one receipt, by itself and a public key. */
#include "cli/commands.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/table.h"
#include "cli/inputs.h"
#include "cli/log_files.h"
#include "cli/options.h"
#include "receipt/chain.h"
#include "receipt/checkpoint.h"
#include "receipt/segment.h"
#include "receipt/statement.h"
#include "receipt/verify.h"

#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_DOES_NOT_VERIFY = 1, CHECKPOINT_WAIT_MS = 3000, CHECKPOINT_LOOK_MS = 10 };

typedef int answer(const struct log_arguments *arguments, struct found_receipt *found, error *err);

static answer show, verify, export_receipt;

static const struct verb {
    const char *name;
    answer *answer;
} verbs[] = { { "show", show }, { "verify", verify }, { "export", export_receipt } };

/* --- show ---------------------------------------------------------------------------------------
 */

static const struct line {
    const char *title, *path;
} lines[] = {
    /* clang-format off */
    { "receipt",       "predicate.id" },
    { "execution",     "predicate.execution" },
    { "caller",        "predicate.caller" },
    { "times",         "predicate.times" },
    { "outcome",       "predicate.outcome" },
    { "opened",        "predicate.opened" },
    { "inputs",        "predicate.inputs" },
    { "variables",     "predicate.environment_names" },
    { "outputs",       "predicate.outputs" },
    { "artifacts",     "predicate.artifacts" },
    { "policy",        "predicate.policy" },
    { "template",      "predicate.template" },
    { "approval",      "predicate.approval" },
    { "granted",       "predicate.limits.granted" },
    { "used",          "predicate.limits.used" },
    { "hits",          "predicate.limits.hits" },
    { "evidence",      "predicate.limits.evidence" },
    { "checks",        "predicate.checks" },
    { "gate",          "predicate.gate" },
    { "denials",       "predicate.denials" },
    { "network",       "predicate.network" },
    { "walls",         "predicate.isolation.walls" },
    { "degraded",      "predicate.isolation.degraded" },
    { "seccomp",       "predicate.isolation.seccomp" },
    { "self-test",     "predicate.isolation.self_test" },
    { "kernel",        "predicate.isolation.kernel" },
    { "leftovers",     "predicate.leftovers" },
    { "log",           "predicate.log" },
    { "event",         "event" },
    { "facts",         "facts" },
    /* clang-format on */
};

static void print_value(const char *title, json_object *value)
{
    (void) printf("%-12s %s\n", title,
                  json_object_is_type(value, json_type_string)
                      ? json_object_get_string(value)
                      : json_object_to_json_string_ext(value, JSON_C_TO_STRING_PLAIN |
                                                                  JSON_C_TO_STRING_NOSLASHESCAPE));
}

static int show(const struct log_arguments *arguments, struct found_receipt *found, error *err)
{
    (void) err;
    if (arguments->json) {
        (void) puts(bytes_text(&found->envelope.payload));
        return 0;
    }
    for_each(line, lines) {
        json_object *value = member_at(found->payload, line->path);
        bool is_list = json_object_is_type(value, json_type_array);
        if (value && !is_list)
            print_value(line->title, value);
        for (size_t i = 0; is_list && i < json_object_array_length(value); i++)
            print_value(i == 0 ? line->title : "", json_object_array_get_idx(value, i));
    }
    (void) printf(
        "\nThis is what it says; whether it was changed since: glovebox receipt verify\n");
    return 0;
}

/* --- verify -------------------------------------------------------------------------------------
 */

/* The key that counts, and the others of the log that follow from it. */
struct keys {
    struct public_key key;
    bool is_own; /* taken from the log itself */
    struct key_chain chain;
};

static int read_keys(const struct log_arguments *arguments, struct keys *keys, error *err)
{
    int folder = -1;
    error none;
    (void) log_folder_open(arguments, &folder, &none);
    auto_fd owned = folder;
    if (log_key_read(arguments, arguments->key ? -1 : owned, &keys->key, &keys->is_own, err) < 0)
        return -1;
    if (owned < 0 || key_chain_read(owned, &keys->chain, &none) < 0)
        keys->chain.count = 0;
    int number = key_chain_number(&keys->chain, keys->key.id);
    if (number < 0)
        keys->chain.count = 0; /* another log's */
    keys->chain.least = number > 0 && !keys->is_own ? (size_t) number : 0;
    return 0;
}

/* What has been found out about a receipt. */
struct standing {
    const struct public_key *signer;
    struct signed_place place;
    uint64_t size;   /* of the checkpoint that it stands under; 0: none was looked at */
    bool is_retired; /* the key that signed it: the log has a later one */
    bool is_vouched; /* the log's newest key has signed a checkpoint over it */
};

/* Whoever has signed it, if that key follows from the one that counts. It must be the very key of
 * the receipt's place: one that was retired, and then stolen, signs nothing that comes later. */
static int check_signature(const struct found_receipt *found, const struct keys *keys,
                           struct standing *standing, error *err)
{
    const struct key_chain *chain = &keys->chain;
    int number = key_chain_number(chain, found->envelope.key_id);
    standing->signer =
        number >= (int) chain->least ? key_chain_key(chain, (size_t) number) : &keys->key;
    if (envelope_check(&found->envelope, standing->signer, err) < 0)
        return -1;
    if (chain->count == 0)
        return 0;
    if (!payload_place(&found->envelope.payload, &standing->place))
        return fail(err, ERR_POLICY, "it does not say where in the log it stands");
    size_t wanted = key_chain_number_at(chain, standing->place.index);
    if (wanted != (size_t) number)
        return fail(err, ERR_POLICY,
                    "it says that it is record %" PRIu64
                    " of the log, which another key signs, %s; the key that has signed it, %s, %s "
                    "record %" PRIu64,
                    standing->place.index, key_chain_key(chain, wanted)->name,
                    standing->signer->name,
                    (size_t) number < wanted ? "was retired with" : "came into force after",
                    chain->links[(size_t) number < wanted ? number : number - 1].index);
    standing->is_retired = (size_t) number < chain->count;
    return 0;
}

static bool is_of_newest_key(const struct keys *keys, const char *checkpoint)
{
    const struct key_chain *chain = &keys->chain;
    struct merkle_head head;
    error unused;
    return checkpoint_read(checkpoint, key_chain_key(chain, chain->count), &head, &unused) == 0;
}

static int read_hash(void *context, uint64_t position, struct merkle_hash *ret, error *err)
{
    ssize_t got = pread(*(const int *) context, ret->bytes, MERKLE_HASH_SIZE,
                        (off_t) (position * MERKLE_HASH_SIZE));
    return got == MERKLE_HASH_SIZE ? 0 : fail(err, ERR_UNAVAILABLE, "the log's tree is cut off");
}

/* A checkpoint as it was signed, and what it says. */
struct signed_head {
    char *text;
    struct merkle_head head;
};

static void signed_head_done(struct signed_head *signed_head)
{
    free(signed_head->text);
    signed_head->text = NULL;
}

#define auto_signed_head __attribute__((cleanup(signed_head_done))) struct signed_head

static int read_head(int folder, const struct public_key *key, struct signed_head *ret, error *err)
{
    static struct key_chain chain;
    if (key_chain_read(folder, &chain, err) < 0)
        return -1;
    if (key_chain_number(&chain, key->id) < 0)
        chain.count = 0;
    return key_chain_checkpoint(&chain, key, ret->text, &ret->head, err);
}

static int read_checkpoint(int folder, const struct public_key *key, struct signed_head *ret,
                           error *err)
{
    size_t size = 0;
    auto_fd file = openat(folder, "checkpoint", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return fail_os(err, "open the log's checkpoint");
    return read_to_end(file, "checkpoint", &ret->text, &size, err) < 0
               ? -1
               : read_head(folder, key, ret, err);
}

/* The proof that came with it: its hash and the others lead to a root that was signed. */
static int check_bundle(const struct found_receipt *found, const struct keys *keys,
                        struct standing *standing, error *err)
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
    size_t count = hashes && json_object_is_type(hashes, json_type_array)
                       ? json_object_array_length(hashes)
                       : MERKLE_PROOF_MOST + 1;
    if (count > MERKLE_PROOF_MOST || !payload_place(&found->envelope.payload, &place) ||
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

/* Whoever holds a key that was retired can sign a place of its time: then what stands there counts,
 * if the log is at hand. Its hashes are looked at, which outlive retention. */
static int check_log(const struct log_arguments *arguments, const struct found_receipt *found,
                     const struct keys *keys, struct standing *standing, error *err)
{
    int folder = -1;
    error none;
    if (log_folder_open(arguments, &folder, &none) < 0)
        return 0;
    auto_fd owned = folder;
    int tree_file = openat(owned, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_fd tree_owned = tree_file;
    if (tree_owned < 0)
        return 0;
    struct merkle_tree tree = { .read = read_hash, .context = &tree_file };
    struct merkle_hash leaf, stored;
    struct merkle_proof proof;
    uint64_t index = standing->place.index;
    merkle_leaf(found->text.data, found->text.size, &leaf);
    if (read_hash(&tree_file, merkle_position(0, index), &stored, &none) < 0 ||
        !merkle_equal(&leaf, &stored))
        return fail(err, ERR_POLICY,
                    "record %" PRIu64
                    " of the log is another one, and the key that has signed this, %s, is retired",
                    index, standing->signer->name);
    auto_signed_head checkpoint = { 0 };
    if (read_checkpoint(owned, &keys->key, &checkpoint, &none) < 0 ||
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

static int print_failure(const struct log_arguments *arguments, const error *cause)
{
    if (arguments->json) {
        json_object *whole = json_object_new_object();
        (void) json_object_object_add(whole, "verified", json_object_new_boolean(false));
        (void) json_object_object_add(whole, "why", json_object_new_string(cause->text));
        (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
        (void) json_object_put(whole);
    } else {
        (void) printf("DOES NOT VERIFY: %s\n", cause->text);
    }
    return EXIT_DOES_NOT_VERIFY;
}

static void print_signer(const struct keys *keys, const struct standing *standing)
{
    const struct key_chain *chain = &keys->chain;
    bool is_other = strcmp(standing->signer->id, keys->key.id) != 0;
    if (keys->is_own)
        (void) puts(
            "not proved: who signed. The key was taken from the log itself; give the one that "
            "you have kept: --key FILE.");
    else if (is_other)
        (void) printf("the key that you gave, %s, is an earlier one of this log, which names "
                      "that key in turn.\n",
                      keys->key.name);
    if (!standing->is_retired)
        return;
    uint64_t last = chain->links[key_chain_number(chain, standing->signer->id)].index;
    (void) printf("the key that signed it is an earlier one of this log, retired with record "
                  "%" PRIu64 ".\n",
                  last);
    if (!standing->is_vouched)
        (void) puts(
            "not proved: that it was signed before that. Whoever got hold of the key since can "
            "sign it; a bundle\n"
            "        under a checkpoint of the newest key proves it (glovebox receipt export "
            "--bundle), or the log itself (--log).");
}

static void print_proof(const struct found_receipt *found, const struct keys *keys,
                        const struct standing *standing)
{
    bool is_lost = strcmp(text_at(found->payload, "predicateType"), PREDICATE_LOST) == 0;
    (void) printf("VERIFIED  %s, signed by %s\n", text_at(found->payload, "predicate.id"),
                  standing->signer->name);
    (void) puts(
        "proved: not a byte of it has changed since the holder of that key signed it;\n"
        "        code, inputs, outputs and artifacts with these hashes are those it speaks of.");
    if (standing->size > 0)
        (void) printf("        it stands in the log, as record %" PRIi64 " of %" PRIu64
                      " under the signed checkpoint.\n",
                      number_at(found->payload, "predicate.log.index"), standing->size);
    else
        (void) puts(
            "not proved: that it stands in the log (glovebox receipt export --bundle adds the "
            "proof).");
    print_signer(keys, standing);
    if (is_lost)
        (void) puts("not proved: what the execution did. Its daemon died before it ended.");
    (void) puts(
        "not proved: that the signer's host was honest. Its root could have signed anything; what "
        "the code, its inputs and its variables were is known by hash and name only.");
}

static int verify(const struct log_arguments *arguments, struct found_receipt *found, error *err)
{
    static struct keys keys;
    if (read_keys(arguments, &keys, err) < 0)
        return -1;
    error cause;
    struct standing standing = { 0 };
    if (check_signature(found, &keys, &standing, &cause) < 0 ||
        (found->bundle && check_bundle(found, &keys, &standing, &cause) < 0) ||
        (standing.is_retired && check_log(arguments, found, &keys, &standing, &cause) < 0))
        return print_failure(arguments, &cause);
    if (!arguments->json) {
        print_proof(found, &keys, &standing);
        return 0;
    }
    json_object *whole = json_object_new_object();
    (void) json_object_object_add(whole, "verified", json_object_new_boolean(true));
    (void) json_object_object_add(whole, "signer", json_object_new_string(standing.signer->name));
    (void) json_object_object_add(whole, "key_from_the_log", json_object_new_boolean(keys.is_own));
    (void) json_object_object_add(whole, "in_log", json_object_new_boolean(standing.size > 0));
    (void) json_object_object_add(
        whole, "retired_key_alone",
        json_object_new_boolean(standing.is_retired && !standing.is_vouched));
    (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
    (void) json_object_put(whole);
    return 0;
}

/* --- export -------------------------------------------------------------------------------------
 */

/* A checkpoint is signed for many records at once, a moment after they were written. */
static int wait_for_checkpoint(int folder, const struct public_key *key, uint64_t index,
                               struct signed_head *ret, error *err)
{
    deadline end = deadline_in(CHECKPOINT_WAIT_MS);
    while (read_checkpoint(folder, key, ret, err) == 0) {
        if (ret->head.size > index)
            return 0;
        if (deadline_left_ms(end) == 0)
            return fail(err, ERR_UNAVAILABLE,
                        "the log's checkpoint is over %" PRIu64
                        " records, and this is record %" PRIu64 "; is gloveboxd running?",
                        ret->head.size, index);
        signed_head_done(ret);
        (void) poll(NULL, 0, CHECKPOINT_LOOK_MS);
    }
    return -1;
}

static int make_bundle(const struct log_arguments *arguments, const struct found_receipt *found,
                       struct bytes *out, error *err)
{
    int folder;
    if (log_folder_open(arguments, &folder, err) < 0)
        return -1;
    auto_fd owned = folder;
    int tree_file = openat(owned, "tree", O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    auto_fd tree_owned = tree_file;
    auto_signed_head checkpoint = { 0 };
    struct public_key key;
    struct merkle_proof proof;
    struct signed_place place;
    bool is_own;
    struct merkle_tree tree = { .read = read_hash, .context = &tree_file };
    if (tree_owned < 0)
        return fail_os(err, "open the log's tree");
    if (!payload_place(&found->envelope.payload, &place))
        return fail(err, ERR_BAD_REQUEST, "it does not say where in the log it stands");
    if (log_key_read(arguments, owned, &key, &is_own, err) < 0 ||
        wait_for_checkpoint(owned, &key, place.index, &checkpoint, err) < 0 ||
        merkle_inclusion(&tree, place.index, checkpoint.head.size, &proof, err) < 0)
        return -1;
    json_object *line = json_object_new_string(checkpoint.text);
    bytes_print(out, "{\"checkpoint\":%s,\"envelope\":",
                json_object_to_json_string_ext(line, JSON_C_TO_STRING_NOSLASHESCAPE));
    (void) json_object_put(line);
    bytes_add(out, found->text.data, found->text.size);
    bytes_add_text(out, ",\"inclusion\":[");
    for (size_t i = 0; i < proof.count; i++) {
        char hex[MERKLE_HEX_SIZE + 1];
        (void) sodium_bin2hex(hex, sizeof hex, proof.hashes[i].bytes, MERKLE_HASH_SIZE);
        bytes_print(out, "%s\"%s\"", i == 0 ? "" : ",", hex);
    }
    bytes_print(out, "],\"index\":%" PRIu64 "}", place.index);
    return 0;
}

static int export_receipt(const struct log_arguments *arguments, struct found_receipt *found,
                          error *err)
{
    auto_bytes out = { 0 };
    if (!arguments->bundle)
        bytes_add(&out, found->text.data, found->text.size);
    else if (make_bundle(arguments, found, &out, err) < 0)
        return -1;
    return log_write_out(arguments, out.data, out.size, err);
}

int command_receipt(int argc, char **argv)
{
    error err = { 0 };
    struct log_arguments arguments;
    int outcome = log_arguments_read(&arguments, argc, argv, "receipt", &err);
    if (outcome == OPTIONS_HELP)
        return 0;
    if (outcome < 0)
        return complain_of(&err);
    for_each(verb, verbs) {
        struct found_receipt found;
        if (strcmp(verb->name, argv[1]) != 0)
            continue;
        int result = receipt_find(&arguments, arguments.operands[0], &found, &err);
        if (result == RECEIPT_IS_NONE && verb->answer == verify)
            return print_failure(&arguments, &err);
        if (result != 0)
            break;
        int status = verb->answer(&arguments, &found, &err);
        found_receipt_done(&found);
        return status < 0 ? complain_of(&err) : status;
    }
    return complain_of(&err);
}
