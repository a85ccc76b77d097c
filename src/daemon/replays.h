/* replays.h - remembers which run a request with an Idempotency-Key has begun, so that the same
 * request sent again gets the same run.
 *
 * Bounded in memory (the oldest of REPLAYS_MOST goes first) and in time (a day). A key belongs to
 * its caller: two callers with the same key do not meet. */
#pragma once

#include "base/error.h"
#include "daemon/runs.h"

#include <stddef.h>

enum { REPLAYS_MOST = 8192, REPLAY_DIGEST_SIZE = 32, REPLAY_KEY_MOST = 255 };

struct replays;

struct replays *replays_new(void); /* NULL: no memory */
void replays_free(struct replays *replays);

/* What makes two requests the same. */
struct replay {
    const char *caller, *key;
    unsigned char digest[REPLAY_DIGEST_SIZE]; /* of the body */
};

/* Fails  ERR_BAD_REQUEST  if the key is empty, too long, or not plain ASCII. */
int replay_check_key(const char *key, error *err);

enum { REPLAY_NEW = 0, REPLAY_KNOWN = 1 };

/* Gives  the id of its run with REPLAY_KNOWN.
 * Fails  ERR_CONFLICT  the key came before with another body: use another key */
int replays_find(const struct replays *replays, const struct replay *replay,
                 char ret_run[RUN_ID_SIZE], error *err);
void replays_keep(struct replays *replays, const struct replay *replay, const char *run);
