/* receipts.c - /v1/receipts and /v1/log: what proves what was run, for whoever keeps it elsewhere.
 */
#include "engine/audit/audit_log.h"

#include "base/table.h"
#include "doors/rest/openapi/openapi.h"
#include "doors/rest/rest.h"
#include "engine/audit/openings.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

static void write_hash(struct bytes *out, const struct merkle_hash *hash)
{
    char hex[2 * MERKLE_HASH_SIZE + 1];
    (void) sodium_bin2hex(hex, sizeof hex, hash->bytes, sizeof hash->bytes);
    json_string(out, hex);
}

static void write_hashes(struct bytes *out, const char *key, const struct merkle_proof *proof)
{
    json_key(out, key);
    json_open(out, '[');
    for (size_t i = 0; i < proof->count; i++)
        write_hash(out, &proof->hashes[i]);
    json_close(out, ']');
}

/* The receipt with what proves that it stands in the log: a file that verifies on its own. */
static int write_bundle(struct receipts *receipts, const char *id, const struct bytes *envelope,
                        struct bytes *out, error *err)
{
    struct ledger *ledger = receipts_ledger(receipts);
    struct merkle_head head;
    struct merkle_proof proof;
    char checkpoint[CHECKPOINT_SIZE];
    uint64_t index;
    if (receipt_read_id(id, &index, err) < 0 ||
        ledger_checkpoint(ledger, checkpoint, &head, err) < 0 ||
        merkle_inclusion(ledger_tree(ledger), index, head.size, &proof, err) < 0)
        return -1;
    json_open(out, '{');
    json_string_field(out, "checkpoint", checkpoint);
    json_key(out, "envelope");
    json_raw(out, envelope->data, envelope->size);
    write_hashes(out, "inclusion", &proof);
    json_count_field(out, "index", index);
    json_close(out, '}');
    return 0;
}

static void get_receipt(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct api_key *key = &exchange->caller.account->key;
    const char *tenant = key->id[0] ? key->tenant : NULL; /* the daemon's owner sees all */
    const char *id = exchange->parameters[0], *proof = exchange_query(exchange, "proof");
    struct bytes envelope = { 0 };
    struct bytes bundle = { 0 };
    error err;
    bool wants_proof = proof && strcmp(proof, "1") == 0;
    if (receipt_read(service->receipts, id, tenant, &envelope, &err) < 0 ||
        (wants_proof && write_bundle(service->receipts, id, &envelope, &bundle, &err) < 0)) {
        bytes_done(&envelope);
        exchange_fail(exchange, &err);
        return;
    }
    if (!wants_proof) {
        exchange_answer(exchange, MHD_HTTP_OK, &envelope);
        return;
    }
    bytes_done(&envelope);
    exchange_answer(exchange, MHD_HTTP_OK, &bundle);
}

static void get_opening(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct bytes json = { 0 };
    error err;
    if (opening_write(service->receipts, exchange->caller.account, exchange->parameters[0], &json,
                      &err) < 0) {
        bytes_done(&json);
        exchange_fail(exchange, &err);
        return;
    }
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void get_checkpoint(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    error err;
    if (ledger_checkpoint(receipts_ledger(service->receipts), text, &head, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes answer = { 0 };
    bytes_add_text(&answer, text);
    exchange_answer_as(exchange, MHD_HTTP_OK, "text/plain; charset=utf-8", &answer);
}

static void get_key(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct public_key *key = ledger_key(receipts_ledger(service->receipts));
    char line[KEY_TEXT_SIZE], pem[KEY_TEXT_SIZE];
    struct bytes json = { 0 };
    public_key_print(key, line);
    public_key_print_pem(key, pem);
    json_open(&json, '{');
    json_string_field(&json, "keyid", key->id);
    json_string_field(&json, "note_key", line);
    json_string_field(&json, "pem", pem);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

/* What both proofs are asked with: a first number, and a size that is the log's if it is not given.
 */
struct range {
    uint64_t from, to;
};

static int read_range(struct exchange *exchange, const char *from, const char *to,
                      struct range *ret_range, error *err)
{
    const struct service *service = exchange->service;
    struct merkle_head head;
    char text[CHECKPOINT_SIZE];
    if (ledger_checkpoint(receipts_ledger(service->receipts), text, &head, err) < 0)
        return -1;
    return exchange_query_count(exchange, from, head.size, 0, &ret_range->from, err) < 0
               ? -1
               : exchange_query_count(exchange, to, head.size, head.size, &ret_range->to, err);
}

static void get_inclusion(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct merkle_tree *tree = ledger_tree(receipts_ledger(service->receipts));
    struct merkle_proof proof;
    struct merkle_hash leaf, root;
    struct range range = { 0 }; /* from the leaf to the size of the tree */
    error err;
    if (read_range(exchange, "index", "size", &range, &err) < 0 ||
        merkle_inclusion(tree, range.from, range.to, &proof, &err) < 0 ||
        tree->read(tree->context, merkle_position(0, range.from), &leaf, &err) < 0 ||
        merkle_root(tree, range.to, &root, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_count_field(&json, "index", range.from);
    json_count_field(&json, "size", range.to);
    json_key(&json, "leaf");
    write_hash(&json, &leaf);
    json_key(&json, "root");
    write_hash(&json, &root);
    write_hashes(&json, "inclusion", &proof);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void get_consistency(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    const struct merkle_tree *tree = ledger_tree(receipts_ledger(service->receipts));
    struct merkle_proof proof;
    struct merkle_hash old, new;
    struct range range = { 0 };
    error err;
    if (read_range(exchange, "from", "to", &range, &err) < 0 ||
        merkle_consistency(tree, range.from, range.to, &proof, &err) < 0 ||
        merkle_root(tree, range.from, &old, &err) < 0 ||
        merkle_root(tree, range.to, &new, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = { 0 };
    json_open(&json, '{');
    json_count_field(&json, "from", range.from);
    json_key(&json, "from_root");
    write_hash(&json, &old);
    json_count_field(&json, "to", range.to);
    json_key(&json, "to_root");
    write_hash(&json, &new);
    write_hashes(&json, "consistency", &proof);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static const struct parameter receipt_query[] = {
    { "proof", IN_QUERY, "=0,1", "1: with the proof that it stands in the log" },
    { 0 },
};
static const struct parameter inclusion_query[] = {
    { "index", IN_QUERY, "count", "of the record; the first is 0", .is_required = true },
    { "size", IN_QUERY, "count", "of the log; as it is now if it is left out" },
    { 0 },
};
static const struct parameter consistency_query[] = {
    { "from", IN_QUERY, "count", "size of the log that was known", .is_required = true },
    { "to", IN_QUERY, "count", "size of the later one; as it is now if it is left out" },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/receipts/{id}",         BODY_NONE, get_receipt,     "The signed receipt of an execution; with ?proof=1 the proof that it stands in the log", .query = receipt_query, .gives = "ReceiptOrProof" },
    { "GET", "/v1/receipts/{id}/opening", BODY_NONE, get_opening,     "What opens the commitments of a receipt: for the key that was answered with the content, and for keys with scope audit, which see what was withheld, too", .gives = "Opening" },
    { "GET", "/v1/log/key",               BODY_NONE, get_key,         "The public key that receipts and checkpoints are signed with", .gives = "LogKey" },
    { "GET", "/v1/log/checkpoint",        BODY_NONE, get_checkpoint,  "The log's signed size and root (C2SP tlog-checkpoint)", .mime = "text/plain" },
    { "GET", "/v1/log/proof/inclusion",   BODY_NONE, get_inclusion,   "Proves that record ?index= is among the first ?size=", .query = inclusion_query, .gives = "InclusionProof" },
    { "GET", "/v1/log/proof/consistency", BODY_NONE, get_consistency, "Proves that the log of ?from= records is the beginning of that of ?to=", .query = consistency_query, .gives = "ConsistencyProof" },
    /* clang-format on */
};

const struct route_table receipt_routes = { "receipts", rows, COUNT_OF(rows), RIGHT_ANY };
