/* audit_log.h - the log of gloveboxd: a signed receipt for every execution that it answers, and
 * audit events (keys, configuration, sessions …).
 *
 *     receipt_note()   before an execution begins: if the daemon dies, the next start writes `lost`
 *     receipt_write()  before its answer is sent; the answer contains the receipt's id
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
    bool sync_each;      /* a record is on disk before the answer; else within 50 ms of it */
    const char *witness; /* NULL, "syslog", a file that each checkpoint is appended to, or a URL */
    struct notify_client *notify_client; /* sends to the URL */
    uint64_t keep_bytes;                 /* bytes of segments to keep; 0: all */
    size_t filter_count; /* seccomp tables of the spawner: descriptors, to be hashed */
    int filters[FILTERS_MAX];
    const char *filter_names[FILTERS_MAX];
};

/* Opens the log and writes `lost` receipts for executions that earlier daemons left open. To be
 * called before the daemon's own filter is loaded. Fails as ledger_open(). */
int receipts_open(uv_loop_t *loop, const struct receipts_settings *settings,
                  struct receipts **ret_receipts, error *err);
void receipts_leave(struct receipts *receipts); /* before the loop ends: closes the timer */
void receipts_close(struct receipts *receipts); /* writes the last checkpoint; after the loop */

/* Writes `lost` receipts for executions of daemons that have ended since. */
int receipts_recover(struct receipts *receipts, error *err);
bool receipts_sync_each(const struct receipts *receipts);

/* Does the published checkpoint cover *size records? If *size is 0, it is set to those that are
 * there now; else records of other writers that it counts are read.
 * Returns  1: yes; 0: not yet, but after RECEIPTS_GROUP_MS and a sync; -1: the disk fails, or
 * another writer is stopped (ERR_UNAVAILABLE, ERR_BUSY). */
int receipts_cover(struct receipts *receipts, uint64_t *size, error *err);

/* Fails  ERR_UNAVAILABLE  the disk is full, read-only or broken: no execution may begin */
int receipts_have_room(struct receipts *receipts, error *err);

/* Does another writer hold the log? A run can wait for it off the loop (finalize.h); other writers
 * wait for 20 ms, and fail with ERR_BUSY. */
bool receipts_are_held(const struct receipts *receipts);

/* Notes an execution that is about to begin. Gives *ret_note, for receipt_write() or
 * receipt_strike(). Fails  as receipts_have_room(), or ERR_SYSTEM: it must not begin. */
int receipt_note(struct receipts *receipts, const struct receipt_facts *facts, unsigned *ret_note,
                 error *err);
void receipt_strike(struct receipts *receipts, unsigned note); /* the execution did not begin */

/* Writes its beginning into the log, if output or artifacts are sent before it ends. Fails  it must
 * not begin, or nothing may be sent before its end. */
int receipt_began(struct receipts *receipts, const struct receipt_facts *facts, error *err);

/* Writes the receipt, a minimal one if the whole one cannot be written, and removes the note
 * (NOTE_NONE: there is none). Gives  ret_id, for the answer. Fails  nothing of the execution may be
 * sent; the note stays, and is recorded as `lost` when the log can be written again. Until then
 * nothing new begins. */
enum { NOTE_NONE = ~0U };
int receipt_write(struct receipts *receipts, const struct receipt_facts *facts, unsigned note,
                  char ret_id[RECEIPT_ID_SIZE], error *err);

/* Writes an event: audit_write(receipts, "key.created", (struct event_field[]){ { "key", id, 0 },
 * { NULL, NULL, 0 } }, &err). Never a secret, never code. */
int audit_write(struct receipts *receipts, const char *kind, const struct event_field *fields,
                error *err);

/* Free bytes on the disk of the log; 0: unknown. */
uint64_t receipts_free_bytes(const struct receipts *receipts);

/* Size of the last record in the log. */
uint64_t receipts_last_size(struct receipts *receipts);

/* For the doors, which read the log. */
struct ledger *receipts_ledger(struct receipts *receipts);

/* Adds the envelope of a receipt or event to `out`; with a tenant, only of that tenant. Fails
 * ERR_NOT_FOUND, ERR_BAD_REQUEST. */
int receipt_read(struct receipts *receipts, const char *id, const char *tenant, struct bytes *out,
                 error *err);

/* A page of the log. */
struct receipt_page {
    uint64_t cursor; /* index of the first record to read */
    uint64_t max;    /* most rows */
    uint64_t next;   /* set: the cursor of the next page */
    bool has_more;   /* set: there are records from `next` on */
    uint64_t count;  /* set: how many rows were added */
};

/* Adds envelopes with their indices to an open array; with a tenant, only those of that tenant. A
 * page ends after a bounded number of records and bytes that were read, with or without rows. */
int receipts_list(struct receipts *receipts, const char *tenant, struct receipt_page *page,
                  struct bytes *out, error *err);

/* The nonce of the commitments of an execution (ledger/opening.h). */
void receipts_nonce(const struct receipts *receipts, const char *execution,
                    struct opening_key *ret_nonce);

/* The commitment to another item that the log names by its hash; `id` names what it belongs to. */
void receipts_commit(const struct receipts *receipts, const char *id, const char *item,
                     const char *sha256, char ret_commitment[OPENING_HEX_SIZE]);

/* Adds, sealed, the facts that the receipt leaves out; `facts` are the true ones. */
int receipt_seal(struct receipts *receipts, const struct receipt_facts *facts, struct bytes *out,
                 error *err);

/* SHA-256 in hex. */
void fact_hash(const void *data, size_t size, char ret_sha256[SHA256_TEXT_SIZE]);
