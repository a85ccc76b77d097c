/* denials.h - refused operations of a run, counted by target and message. */
#pragma once

#include "contract/agent.h"
#include "engine/observe/metrics.h"

#include <stddef.h>
#include <stdint.h>

enum { DENIALS_MAX = 128, DENIAL_TARGET_SIZE = 160, DENIAL_MESSAGE_SIZE = 240 };

struct denial {
    enum denial_reason reason;
    const char *layer; /* of the reason */
    char target[DENIAL_TARGET_SIZE];
    char message[DENIAL_MESSAGE_SIZE];
    uint64_t count;
};

struct denials {
    size_t count;
    struct denial *rows;
    uint64_t unlisted; /* refusals beyond DENIALS_MAX different ones */
};

void denials_done(struct denials *denials);

/* A system call that the filter refused. The message names `policy`. */
void denials_add_call(struct denials *denials, const struct agent_denial *call, const char *policy);

/* A file that is not returned. `path` need not be UTF-8. */
void denials_add_skipped(struct denials *denials, const struct agent_skipped *skipped,
                         const char *path, size_t path_size);

void denials_add(struct denials *denials, enum denial_reason reason, const char *target,
                 const char *message, uint64_t count);
