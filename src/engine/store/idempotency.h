/* idempotency.h - remembers what a request with an Idempotency-Key has begun (a run, a cell, a
 * session, a process), so that the same request sent again gets the same, also from the daemon that
 * comes after this one.
 *
 * A key is kept for a day on a clock that only grows: it counts while a daemon runs, and whatever
 * the wall clock does changes nothing. None is forgotten sooner: whose tenant has its share of
 * IDEMPOTENCY_MAX in use is refused new ones. A key belongs to its caller: two callers with the
 * same key do not meet.
 *
 *   See  docs/decisions/0098 */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

enum {
    IDEMPOTENCY_MAX = 1 << 18,
    IDEMPOTENCY_DIGEST_SIZE = 32,
    IDEMPOTENCY_KEY_MAX = 255,
    IDEMPOTENCY_ID_SIZE = 37, /* of a run or a session, and the end */
};

struct idempotency;

struct idempotency_settings {
    uv_loop_t *loop;   /* brings keys to disk within 50 ms; NULL: the kernel does some day */
    const char *state; /* the folder of the file `replays`; NULL: keys live in memory only */
    bool sync_each;    /* a key is on disk before idempotency_keep() returns */
};

/* Reads what the daemons before have kept. While another daemon has the file nothing is known, and
 * nothing is kept: idempotency_are_elsewhere(). */
int idempotency_open(const struct idempotency_settings *settings, struct idempotency **ret_replays,
                     error *err);
void idempotency_leave(struct idempotency *idempotency); /* the loop ends: gives its timer back */
void idempotency_free(struct idempotency *idempotency);  /* after the loop */

/* A daemon before this one still serves what it has begun, or two were started on one state. */
bool idempotency_are_elsewhere(const struct idempotency *idempotency);
bool idempotency_are_awaited(const struct idempotency *idempotency); /* another daemon waits */

enum { IDEMPOTENCY_ELSEWHERE = 1 };

/* Tries to become the one who has the file. Returns 0, or IDEMPOTENCY_ELSEWHERE. */
int idempotency_take_over(struct idempotency *idempotency, error *err);
void idempotency_give_back(struct idempotency *idempotency);

/* What makes two requests the same. */
struct idempotency_entry {
    const char *caller, *tenant, *key;
    unsigned char digest[IDEMPOTENCY_DIGEST_SIZE]; /* of place and body */
};

/* Fails  ERR_BAD_REQUEST  if the key is empty, too long, or not plain ASCII. */
int idempotency_check_key(const char *key, error *err);

struct replayed {
    char id[IDEMPOTENCY_ID_SIZE];
    bool is_of_earlier; /* a daemon before this one was to begin it */
    bool is_of_boot;    /* the machine has not been started again since */
    uint64_t log_size;  /* records that the log of receipts had then */
};

enum { IDEMPOTENCY_NEW = 0, IDEMPOTENCY_KNOWN = 1 };

/* Gives  *ret_replayed with IDEMPOTENCY_KNOWN.
 * Fails  ERR_CONFLICT     the key came before with another body: use another key
 *        ERR_UNAVAILABLE  the keys are elsewhere, or their disk fails: ask again in a second */
int idempotency_find(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     struct replayed *ret_replayed, error *err);

/* To be called before what it names begins, so that no death of the daemon comes between.
 * Fails  ERR_QUOTA                    the tenant has its share of keys in use
 *        ERR_SYSTEM, ERR_UNAVAILABLE  it cannot be kept: then it must not begin */
int idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     const struct replayed *replayed, error *err);

/* What the last idempotency_keep() named was refused. */
void idempotency_drop_last(struct idempotency *idempotency);
