/* idempotency.h - remembers what a request with an Idempotency-Key has begun (a run, a cell, a
 * session, a process), so that the same request sent again begins nothing, also after a restart of
 * the daemon.
 *
 * A key is kept for a day, by a clock that counts while a daemon runs and does not depend on the
 * wall clock. None is dropped sooner: a tenant that has used its share of IDEMPOTENCY_MAX is
 * refused new ones. A key belongs to its caller: two callers may use the same.
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
    IDEMPOTENCY_ID_SIZE = 37, /* of a run or a session, and NUL */
};

struct idempotency;

struct idempotency_settings {
    uv_loop_t *loop;   /* for syncs within 50 ms; NULL: the kernel writes the file later */
    const char *state; /* the folder of the file `replays`; NULL: in memory only */
    bool sync_each;    /* a key is on disk before idempotency_keep() returns */
};

/* Reads the keys of earlier daemons. While another daemon owns the file nothing is known, and
 * nothing is stored: idempotency_are_elsewhere(). */
int idempotency_open(const struct idempotency_settings *settings, struct idempotency **ret_replays,
                     error *err);
void idempotency_leave(struct idempotency *idempotency); /* before the loop ends */
void idempotency_free(struct idempotency *idempotency);  /* after the loop */

/* An earlier daemon still runs, or two were started with one state folder. */
bool idempotency_are_elsewhere(const struct idempotency *idempotency);
bool idempotency_are_awaited(const struct idempotency *idempotency); /* another daemon waits */

enum { IDEMPOTENCY_ELSEWHERE = 1 };

/* Tries to take the file. Returns 0, or IDEMPOTENCY_ELSEWHERE. */
int idempotency_take_over(struct idempotency *idempotency, error *err);
void idempotency_give_back(struct idempotency *idempotency);

/* A request: two are the same if all of this is equal. */
struct idempotency_entry {
    const char *caller, *tenant, *key;
    unsigned char digest[IDEMPOTENCY_DIGEST_SIZE]; /* of path and body */
};

/* Fails  ERR_BAD_REQUEST  if the key is empty, too long, or not plain ASCII. */
int idempotency_check_key(const char *key, error *err);

struct replayed {
    char id[IDEMPOTENCY_ID_SIZE];
    bool is_of_earlier; /* an earlier daemon was to begin it */
    bool is_of_boot;    /* the machine has not rebooted since */
    uint64_t log_size;  /* records in the log of receipts then */
};

enum { IDEMPOTENCY_NEW = 0, IDEMPOTENCY_KNOWN = 1 };

/* Gives  *ret_replayed with IDEMPOTENCY_KNOWN. Fails  ERR_CONFLICT  the key was used with another
 * body: use another key; ERR_UNAVAILABLE  another daemon owns the keys, or their disk fails: try
 * again in a second */
int idempotency_find(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     struct replayed *ret_replayed, error *err);

/* To be called before the thing begins, so that a death of the daemon in between does no harm.
 * Fails ERR_QUOTA  the tenant has used its share of keys; ERR_SYSTEM, ERR_UNAVAILABLE  it cannot be
 * stored: it must not begin */
int idempotency_keep(struct idempotency *idempotency, const struct idempotency_entry *replay,
                     const struct replayed *replayed, error *err);

/* Drops the last idempotency_keep(): the request was refused. */
void idempotency_drop_last(struct idempotency *idempotency);
