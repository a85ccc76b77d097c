/* replays.h - remembers which run a request with an Idempotency-Key has begun, so that the same
 * request sent again gets the same run, also from the daemon that comes after this one.
 *
 * Bounded in memory (the oldest of REPLAYS_MOST goes first) and in time (a day). A key belongs to
 * its caller: two callers with the same key do not meet. */
#pragma once

#include "base/error.h"
#include "daemon/runs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { REPLAYS_MOST = 8192, REPLAY_DIGEST_SIZE = 32, REPLAY_KEY_MOST = 255 };

struct replays;

/* Reads what the daemons before have kept in the file `replays` of the folder `state`, and keeps
 * what comes there; with NULL, or while another daemon has that file, only in memory. */
int replays_open(const char *state, struct replays **ret_replays, error *err);
void replays_free(struct replays *replays);

/* What makes two requests the same. */
struct replay {
    const char *caller, *key;
    unsigned char digest[REPLAY_DIGEST_SIZE]; /* of the body */
};

/* Fails  ERR_BAD_REQUEST  if the key is empty, too long, or not plain ASCII. */
int replay_check_key(const char *key, error *err);

struct replayed {
    char run[RUN_ID_SIZE];
    bool is_of_earlier; /* a daemon before this one was to begin it */
    uint64_t log_size;  /* records that the log of receipts had then */
};

enum { REPLAY_NEW = 0, REPLAY_KNOWN = 1 };

/* Gives  *ret_replayed with REPLAY_KNOWN.
 * Fails  ERR_CONFLICT  the key came before with another body: use another key */
int replays_find(const struct replays *replays, const struct replay *replay,
                 struct replayed *ret_replayed, error *err);

/* To be called before the run begins, so that no death of the daemon comes between.
 * Fails  ERR_SYSTEM  it cannot be kept: then the run must not begin */
int replays_keep(struct replays *replays, const struct replay *replay,
                 const struct replayed *replayed, error *err);

/* The run of the last replays_keep() was refused. */
void replays_drop_last(struct replays *replays);
