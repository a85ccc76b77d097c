/* receipts.c - /v1/receipts and /v1/log: proofs of what was run, which clients may store. */
#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/service/service_receipts.h"
#include "json/writer.h"

#include <inttypes.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>

static void write_hashes(struct bytes *out, const char *key, const struct log_proof *proof)
{
    json_open_field(out, key, '[');
    for (size_t i = 0; i < proof->count; i++)
        json_string(out, proof->hashes[i]);
    json_close(out, ']');
}

enum { COVER_LOOK_MS = 5 };

/* False: the request waits, or has failed. The receipt, or if it is NULL what is in the log at its
 * beginning, is to be in the checkpoint; the loop must not wait for the disk. */
static bool is_covered(struct exchange *exchange, const char *receipt)
{
    error err;
    int result = service_log_covers(exchange->service, receipt, &exchange->covers, &err);
    if (result < 0)
        exchange_fail(exchange, &err);
    if (result == 0)
        exchange_wait_until(exchange, deadline_in(COVER_LOOK_MS));
    return result > 0;
}

/* The receipt, and the proof that it is in the log: a file that can be verified by itself. */
static int write_bundle(const struct exchange *exchange, const struct bytes *envelope,
                        struct bytes *out, error *err)
{
    struct log_proof proof;
    auto_bytes checkpoint = { 0 };
    if (service_receipt_proof(exchange->service, exchange->parameters[0], &checkpoint, &proof,
                              err) < 0)
        return -1;
    json_open(out, '{');
    json_string_field(out, "checkpoint", bytes_text(&checkpoint));
    json_key(out, "envelope");
    json_raw(out, envelope->data, envelope->size);
    write_hashes(out, "inclusion", &proof);
    json_count_field(out, "index", proof.from);
    json_close(out, '}');
    return 0;
}

static void get_receipt(struct exchange *exchange)
{
    const char *proof = exchange_query(exchange, "proof");
    struct bytes envelope = { 0 }, bundle = { 0 };
    error err;
    int result = service_receipt(exchange->service, &exchange->caller, exchange->parameters[0],
                                 &envelope, &err);
    if (result < 0 || !proof || strcmp(proof, "1") != 0) {
        exchange_answer_or_fail(exchange, result, &envelope, &err);
        return;
    }
    if (!is_covered(exchange, exchange->parameters[0])) {
        bytes_done(&envelope);
        return;
    }
    result = write_bundle(exchange, &envelope, &bundle, &err);
    bytes_done(&envelope);
    exchange_answer_or_fail(exchange, result, &bundle, &err);
}

enum { PAGE = 50 };

static void get_receipts(struct exchange *exchange)
{
    struct record_page page = { .max = exchange_query_count(exchange, "limit", PAGE),
                                .cursor = exchange_query_count(exchange, "cursor", 0) };
    struct bytes json = json_begin('{');
    char next[24];
    error err;
    json_open_field(&json, "receipts", '[');
    if (service_list_receipts(exchange->service, &exchange->caller, &page, &json, &err) < 0) {
        bytes_done(&json);
        exchange_fail(exchange, &err);
        return;
    }
    json_close(&json, ']');
    (void) snprintf(next, sizeof next, "%" PRIu64, page.next);
    json_string_field(&json, "next_cursor", page.has_more ? next : NULL);
    exchange_end_json(exchange, &json, "}");
}

static void get_opening(struct exchange *exchange)
{
    struct bytes json = { 0 };
    error err;
    int result = service_receipt_opening(exchange->service, &exchange->caller,
                                         exchange->parameters[0], &json, &err);
    exchange_answer_or_fail(exchange, result, &json, &err);
}

static void get_checkpoint(struct exchange *exchange)
{
    struct bytes text = { 0 };
    uint64_t size;
    error err;
    if (!is_covered(exchange, NULL))
        return;
    if (service_log_checkpoint(exchange->service, &text, &size, &err) < 0)
        exchange_fail(exchange, &err);
    else
        exchange_answer_as(exchange, MHD_HTTP_OK, "text/plain; charset=utf-8", &text);
}

static void get_key(struct exchange *exchange)
{
    struct log_key key;
    struct bytes json = json_begin('{');
    service_log_key(exchange->service, &key);
    json_string_field(&json, "keyid", key.id);
    json_string_field(&json, "note_key", key.line);
    json_string_field(&json, "pem", key.pem);
    exchange_end_json(exchange, &json, "}");
}

/* Both proofs need a first number and a size, by default that of the log. */
struct proof_words {
    const char *from, *to, *first, *second, *hashes;
};

static void prove(struct exchange *exchange, const struct proof_words *words,
                  int (*find)(const struct service *, struct log_proof *, error *))
{
    /* Of inclusion: from the leaf to the size of the tree. */
    struct log_proof proof = { .from = exchange_query_count(exchange, words->from, 0) };
    auto_bytes checkpoint = { 0 };
    error err;
    uint64_t size;
    if (!is_covered(exchange, NULL))
        return;
    int result = service_log_checkpoint(exchange->service, &checkpoint, &size, &err);
    if (result == 0)
        proof.to = exchange_query_count(exchange, words->to, size);
    if (result == 0 && (proof.from > size || proof.to > size))
        result = fail(&err, ERR_BAD_REQUEST, "%s and %s are at most %" PRIu64 ", the log's size",
                      words->from, words->to, size);
    if (result < 0 || find(exchange->service, &proof, &err) < 0) {
        exchange_fail(exchange, &err);
        return;
    }
    struct bytes json = json_begin('{');
    json_count_field(&json, words->from, proof.from);
    json_count_field(&json, words->to, proof.to);
    json_string_field(&json, words->first, proof.first);
    json_string_field(&json, words->second, proof.second);
    write_hashes(&json, words->hashes, &proof);
    exchange_end_json(exchange, &json, "}");
}

static void get_inclusion(struct exchange *exchange)
{
    static const struct proof_words words = { "index", "size", "leaf", "root", "inclusion" };
    prove(exchange, &words, service_prove_inclusion);
}

static void get_consistency(struct exchange *exchange)
{
    static const struct proof_words words = { "from", "to", "from_root", "to_root", "consistency" };
    prove(exchange, &words, service_prove_consistency);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET", "/v1/receipts",              BODY_NONE, get_receipts,    "Receipts and events of the tenant, in the order of the log; the owner sees all", RIGHT_AUDIT, .gives = "ReceiptPage", .operation = "listReceipts",
      .query = QUERY({ "limit", IN_QUERY, "count 1..100",
                       "rows of a page; 50 if it is left out. 64 KiB of the log end a page, too" },
                     { "cursor", IN_QUERY, "count",
                       "`next_cursor` of the page before, or the index of a record, as one more than that of the "
                       "last row: what has come since" }) },
    { "GET", "/v1/receipts/{id}",         BODY_NONE, get_receipt,     "The signed receipt of an execution; with ?proof=1 the proof that it stands in the log", .gives = "ReceiptOrProof", .operation = "getReceipt",
      .query = QUERY({ "proof", IN_QUERY, "=0, 1", "1: with the proof that it stands in the log" }) },
    { "GET", "/v1/receipts/{id}/opening", BODY_NONE, get_opening,     "What opens the commitments of a receipt: for the key that was answered with the content, and for keys with scope audit, which see what was withheld, too", .gives = "Opening", .operation = "getReceiptOpening" },
    { "GET", "/v1/log/key",               BODY_NONE, get_key,         "The public key that receipts and checkpoints are signed with", .gives = "LogKey", .operation = "getLogKey" },
    { "GET", "/v1/log/checkpoint",        BODY_NONE, get_checkpoint,  "The log's signed size and root (C2SP tlog-checkpoint)", .mime = "text/plain", .operation = "getLogCheckpoint" },
    { "GET", "/v1/log/proof/inclusion",   BODY_NONE, get_inclusion,   "Proves that record ?index= is among the first ?size=", .gives = "InclusionProof", .operation = "getInclusionProof",
      .query = QUERY({ "index", IN_QUERY, "count", "of the record; the first is 0", .is_required = true },
                     { "size", IN_QUERY, "count", "of the log; as it is now if it is left out" }) },
    { "GET", "/v1/log/proof/consistency", BODY_NONE, get_consistency, "Proves that the log of ?from= records is the beginning of that of ?to=", .gives = "ConsistencyProof", .operation = "getConsistencyProof",
      .query = QUERY({ "from", IN_QUERY, "count", "size of the log that was known", .is_required = true },
                     { "to", IN_QUERY, "count", "size of the later one; as it is now if it is left out" }) },
    /* clang-format on */
};

const struct route_table receipt_routes = { "receipts", rows, COUNT_OF(rows), RIGHT_ANY,
                                            .text = "The signed log of what was run" };
