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

/* Whoever has signed it, if that key follows from the one that counts. */
static const struct public_key *signer_of(const struct keys *keys, const struct envelope *envelope)
{
    int number = key_chain_number(&keys->chain, envelope->key_id);
    return number >= (int) keys->chain.least ? key_chain_key(&keys->chain, (size_t) number)
                                             : &keys->key;
}

/* The proof that came with it: its hash and the others lead to a root that was signed. */
static int check_bundle(const struct found_receipt *found, const struct keys *keys,
                        uint64_t *ret_size, error *err)
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
    *ret_size = head.size;
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

static void print_proof(const struct found_receipt *found, const struct public_key *key,
                        bool key_is_own, uint64_t size)
{
    bool is_lost = strcmp(text_at(found->payload, "predicateType"), PREDICATE_LOST) == 0;
    (void) printf("VERIFIED  %s, signed by %s\n", text_at(found->payload, "predicate.id"),
                  key->name);
    (void) puts(
        "proved: not a byte of it has changed since the holder of that key signed it;\n"
        "        code, inputs, outputs and artifacts with these hashes are those it speaks of.");
    if (size > 0)
        (void) printf("        it stands in the log, as record %" PRIi64 " of %" PRIu64
                      " under the signed checkpoint.\n",
                      number_at(found->payload, "predicate.log.index"), size);
    else
        (void) puts(
            "not proved: that it stands in the log (glovebox receipt export --bundle adds the "
            "proof).");
    if (key_is_own)
        (void) puts(
            "not proved: who signed. The key was taken from the log itself; give the one that "
            "you have kept: --key FILE.");
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
    uint64_t size = 0;
    const struct public_key *signer = signer_of(&keys, &found->envelope);
    if (envelope_check(&found->envelope, signer, &cause) < 0 ||
        (found->bundle && check_bundle(found, &keys, &size, &cause) < 0))
        return print_failure(arguments, &cause);
    if (!arguments->json) {
        print_proof(found, signer, keys.is_own, size);
        if (signer != &keys.key && strcmp(signer->id, keys.key.id) != 0)
            (void) printf("the key that you gave, %s, is an earlier one of this log, which names "
                          "that key in turn.\n",
                          keys.key.name);
        return 0;
    }
    json_object *whole = json_object_new_object();
    (void) json_object_object_add(whole, "verified", json_object_new_boolean(true));
    (void) json_object_object_add(whole, "signer", json_object_new_string(signer->name));
    (void) json_object_object_add(whole, "key_from_the_log", json_object_new_boolean(keys.is_own));
    (void) json_object_object_add(whole, "in_log", json_object_new_boolean(size > 0));
    (void) puts(json_object_to_json_string_ext(whole, JSON_C_TO_STRING_PLAIN));
    (void) json_object_put(whole);
    return 0;
}

/* --- export -------------------------------------------------------------------------------------
 */

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
