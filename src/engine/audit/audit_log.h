/* audit_log.h - what gloveboxd leaves behind as proof: a signed receipt for every execution that it
 * answers, and events of its own (keys, configuration, sessions …), in one log.
 *
 *     receipt_note()   before an execution begins: if the daemon dies, the next start says `lost`
 *     receipt_write()  before its answer goes out; the id goes into the answer
 *     audit_write()    for everything else that an auditor may ask about later
 *
 *   See  ledger/facts.h, ledger/ledger.h, docs/receipts.md */
#pragma once

#include "ledger/facts.h"
#include "ledger/ledger.h"
#include "ledger/statement.h"

#include <stdbool.h>
#include <uv.h>

struct notify_client;
struct receipts;

enum { RECEIPTS_GROUP_MS = 50, FILTERS_MAX = 4 };

struct receipts_settings {
    const char *state;   /* the log lies in its folder "log" */
    bool sync_each;      /* a record is on disk before the answer, not within 50 ms of it */
    const char *witness; /* NULL, "syslog", a file that each checkpoint is appended to, or a URL */
    struct notify_client *notify_client; /* goes to the URL */
    uint64_t keep_bytes;                 /* of segments; 0: all are kept */
    size_t filter_count; /* seccomp tables that the spawner loads: descriptors to be hashed */
    int filters[FILTERS_MAX];
    const char *filter_names[FILTERS_MAX];
};

/* Opens the log, writes `lost` receipts for what dead daemons have left open. Before the daemon
 * confines itself. Fails as ledger_open(). */
int receipts_open(uv_loop_t *loop, const struct receipts_settings *settings,
                  struct receipts **ret_receipts, error *err);
void receipts_leave(struct receipts *receipts); /* the loop ends: gives its timer back */
void receipts_close(struct receipts *receipts); /* the last checkpoint; after the loop */

/* Writes `lost` receipts for what daemons have left open that have ended since. */
int receipts_recover(struct receipts *receipts, error *err);
bool receipts_sync_each(const struct receipts *receipts);

/* Fails  ERR_UNAVAILABLE  the disk is full, read-only or broken: nothing new may begin */
int receipts_have_room(struct receipts *receipts, error *err);

/* Does another writer hold the log? Who can wait does so without the loop, for as long as that is
 * (finalize.h); the others wait for 20 ms, and fail with ERR_BUSY. */
bool receipts_are_held(const struct receipts *receipts);

/* Notes an execution that is about to begin. Gives *ret_note, for receipt_write() or
 * receipt_strike(). Fails  as receipts_have_room(), or ERR_SYSTEM: then it must not begin. */
int receipt_note(struct receipts *receipts, const struct receipt_facts *facts, unsigned *ret_note,
                 error *err);
void receipt_strike(struct receipts *receipts,
                    unsigned note); /* it never began, no answer is sent */

/* Writes that it begins into the log itself, for what is handed out, or reaches a client, before
 * its end. Fails  then it must not begin, or nothing of it is handed out before its end. */
int receipt_began(struct receipts *receipts, const struct receipt_facts *facts, error *err);

/* Writes the receipt and strikes the note (NOTE_NONE: there is none): a minimal one if the whole
 * one cannot be written. Gives  ret_id, for the answer. Fails  then nothing of the execution may be
 * handed out; the note stays, and is recorded as `lost` as soon as the log can be written. Until
 * then nothing new begins. */
enum { NOTE_NONE = ~0U };
int receipt_write(struct receipts *receipts, const struct receipt_facts *facts, unsigned note,
                  char ret_id[RECEIPT_ID_SIZE], error *err);

/* Makes and signs a receipt for the case that this is what will have happened, and writes nothing.
 * If receipt_write() then has the same to say, and nothing was written between, it is at hand. */
void receipt_presign(struct receipts *receipts, const struct receipt_facts *facts);

/* Writes an event: audit_write(receipts, "key.created", (struct event_field[]){ { "key", id, 0 },
 * { NULL, NULL, 0 } }, &err). Never a secret, never code. */
int audit_write(struct receipts *receipts, const char *kind, const struct event_field *fields,
                error *err);

/* Bytes that are left on the disk of the log; 0: unknown. */
uint64_t receipts_free_bytes(const struct receipts *receipts);

/* Bytes that the last record has added to the log. */
uint64_t receipts_last_size(struct receipts *receipts);

/* For the doors: the log to be read. */
struct ledger *receipts_ledger(struct receipts *receipts);

/* Adds the envelope of that receipt or event to `out`; with a tenant, only of one of its own:
 * others do not exist for it. Fails  ERR_NOT_FOUND, ERR_BAD_REQUEST. */
int receipt_read(struct receipts *receipts, const char *id, const char *tenant, struct bytes *out,
                 error *err);

/* A page of the log: records in their order. */
struct receipt_page {
    uint64_t cursor; /* index of the first record that is looked at */
    uint64_t max;    /* rows */
    uint64_t next;   /* set: the cursor of what follows */
    bool has_more;   /* set: there is something at `next` */
    uint64_t count;  /* set: how many rows were added */
};

/* Adds envelopes with their indices to an open array; with a tenant, only its own. A page ends
 * after a bounded number of records and bytes that were looked at, with or without rows. */
int receipts_list(struct receipts *receipts, const char *tenant, struct receipt_page *page,
                  struct bytes *out, error *err);

/* The nonce of what an execution commits to (ledger/opening.h). */
void receipts_nonce(const struct receipts *receipts, const char *execution,
                    struct opening_key *ret_nonce);

/* The commitment to something else that a log names by its hash: `id` says of what. */
void receipts_commit(const struct receipts *receipts, const char *id, const char *item,
                     const char *sha256, char ret_commitment[OPENING_HEX_SIZE]);

/* Adds what a receipt will say nothing of, sealed; `facts` are the true ones. */
int receipt_seal(struct receipts *receipts, const struct receipt_facts *facts, struct bytes *out,
                 error *err);

/* SHA-256 in hex. */
void fact_hash(const void *data, size_t size, char ret_sha256[SHA256_TEXT_SIZE]);
