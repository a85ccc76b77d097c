/* schemas_log.c - the bodies for receipts, the log, and the state of the daemon, field by field.
 * Types are written as in schema.h. */
#include "engine/service/schema/schema.h"

#include <stddef.h>

/* clang-format off */
static const struct property signature[] = {
    { "keyid", "string /^[0-9a-f]{64}$/", "SHA-256 of the Ed25519 public key" },
    { "sig",   "base64", "" },
    { 0 },
};
static const struct property envelope[] = {
    { "payload",     "base64", "JSON, as docs/reference/receipt.schema.json and event.schema.json say" },
    { "payloadType", "=application/vnd.in-toto+json,application/vnd.glovebox.event+json", "" },
    { "signatures",  "[1]Signature", "" },
    { 0 },
};
static const struct property receipt_proof[] = {
    { "checkpoint", "string",   "the log's signed size and root (C2SP tlog-checkpoint)" },
    { "envelope",   "Envelope", "" },
    { "inclusion",  "[]string /^[0-9a-f]{64}$/", "hashes from the leaf to the root (RFC 9162)" },
    { "index",      "count",    "of the record" },
    { 0 },
};
static const struct property logged_record[] = {
    { "envelope", "Envelope", "" },
    { "index",    "count",    "of the record in the log" },
    { 0 },
};
static const struct property receipt_page[] = {
    { "receipts",    "[]LoggedRecord", "receipts and events; a page may have none and yet a `next_cursor`" },
    { "next_cursor", "string?", "of the next page; null: this was the last" },
    { 0 },
};
static const struct property opening_item[] = {
    { "group",  "=inputs,outputs,artifacts,approval", "" },
    { "name",   "string", "as the receipt names it" },
    { "key",    "string /^[0-9a-f]{64}$/", "opens the commitment to this item, and no other" },
    { "sha256", "string /^[0-9a-f]{64}$/", "of the content" },
    { 0 },
};
static const struct property opening[] = {
    { "receipt",      "string", "" },
    { "execution",    "string", "" },
    { "items",        "[]OpeningItem", "" },
    { "sealed_items", "[]OpeningItem", "of what was withheld", true },
    { "sealed",       "object?", "the statement with what was withheld" },
    { 0 },
};
static const struct property log_key[] = {
    { "keyid",    "string /^[0-9a-f]{64}$/", "" },
    { "note_key", "string", "for verifiers of signed notes" },
    { "pem",      "string", "for openssl" },
    { 0 },
};
static const struct property inclusion_proof[] = {
    { "index",     "count", "of the record" },
    { "size",      "count", "of the log" },
    { "leaf",      "string /^[0-9a-f]{64}$/", "hash of the record" },
    { "root",      "string /^[0-9a-f]{64}$/", "of the log" },
    { "inclusion", "[]string /^[0-9a-f]{64}$/", "hashes from the leaf to the root (RFC 9162)" },
    { 0 },
};
static const struct property consistency_proof[] = {
    { "from",        "count", "size of the log that was known" },
    { "from_root",   "string /^[0-9a-f]{64}$/", "" },
    { "to",          "count", "size of the later one" },
    { "to_root",     "string /^[0-9a-f]{64}$/", "" },
    { "consistency", "[]string /^[0-9a-f]{64}$/", "hashes that prove it (RFC 9162)" },
    { 0 },
};
static const struct property pool[] = {
    { "template",     "string?", "" },
    { "set",          "count?",  "number of the imports that are loaded; null: no interpreter" },
    { "set_name",     "string?", "as the recipe calls them under `zygotes`" },
    { "tenant",       "count",   "0: of any key" },
    { "memory_bytes", "count",   "" },
    { "parked",       "count",   "that are ready" },
    { "building",     "count",   "" },
    { "target",       "count",   "how many shall be ready" },
    { "per_second",   "count",   "how many are leased, recently" },
    { 0 },
};
static const struct property key_use[] = {
    { "id",          "string?",  "null: the daemon's owner" },
    { "name",        "string",   "" },
    { "tenant",      "string?",  "" },
    { "queued",      "count",    "runs that wait" },
    { "active",      "count",    "runs under way" },
    { "sessions",    "count",    "that have not ended" },
    { "concurrency", "count",    "how many runs, and how many sessions, it may have; 0: its share of the slots" },
    { "runs",        "count",    "since the daemon began, as all below" },
    { "refused",     "count",    "" },
    { "built",       "count",    "runs for which no sandbox was ready" },
    { "cpu_ms",      "count",    "" },
    { "cpu_ms_today", "count",   "" },
    { "cpu_seconds_per_day", "count", "its quota; 0: none" },
    { "log_bytes_today", "count", "bytes that it has added to the log of receipts" },
    { "log_bytes_per_day", "count", "its quota; 0: none" },
    { "runs_per_minute", "count", "its quota; 0: none" },
    { "ends",        "{}count",  "runs by their status" },
    { "limit_hits",  "{}count",  "runs by the limits that they met" },
    { 0 },
};
static const struct property status[] = {
    { "version",  "string",  "" },
    { "ready",    "boolean", "a run of the default policy begins now, as GET /readyz says" },
    { "cause",    "string?", "why it does not, and what to do" },
    { "slots",    "count",   "sandboxes that may be at once" },
    { "in_use",   "count",   "of them" },
    { "parked",   "count",   "built ahead" },
    { "building", "count",   "" },
    { "active",   "count",   "runs under way" },
    { "queued",   "count",   "runs that wait" },
    { "queue",    "count",   "how many may" },
    { "sessions", "count",   "that have not ended" },
    { "closing",  "boolean", "it takes no more runs" },
    { "warnings", "[]string", "what an operator should repair: a reload that was refused, policies that cannot be used, templates that cannot be read" },
    { "pools",    "[]Pool",  "" },
    { "keys",     "[]KeyUse", "those that were used" },
    { 0 },
};
static const struct property document[] = {
    { "openapi",    "string",   "" },
    { "info",       "object",   "" },
    { "servers",    "[]object", "" },
    { "security",   "[]object", "" },
    { "tags",       "[]object", "" },
    { "paths",      "object",   "" },
    { "components", "object",   "" },
    { 0 },
};

const struct schema log_schemas[] = {
    { "Signature", "Of the daemon's key", signature },
    { "Envelope", "A signed record (DSSE)", envelope },
    { "ReceiptProof", "A receipt with the proof that it is in the log", receipt_proof },
    { "LoggedRecord", "A record of the log, with its place", logged_record },
    { "ReceiptPage", "A page of the log", receipt_page },
    { "ReceiptOrProof", "The receipt, with ?proof=1 the proof too", NULL, { "Envelope", "ReceiptProof" } },
    { "OpeningItem", "The opening of one commitment", opening_item },
    { "Opening", "The openings of a receipt's commitments", opening },
    { "LogKey", "The public key of the log", log_key },
    { "InclusionProof", "Proves that a record is in the log", inclusion_proof },
    { "ConsistencyProof", "Proves that records were only added to the log", consistency_proof },
    { "Pool", "Sandboxes of one shape", pool },
    { "KeyUse", "How a key was used", key_use },
    { "Status", "How the daemon is used", status },
    { "Document", "An OpenAPI document", document },
    { 0 },
};
/* clang-format on */
