/* service_artifacts.h - files that runs have made, by their hash. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct artifact_file {
    int fd; /* the caller closes it */
    uint64_t size;
    const char *mime; /* until the service is called again */
};

/* What an earlier daemon has kept is hashed before it is opened. Returns 0 if that is not needed, 1
 * if it is under way: say with artifact_check_await() who waits. */
struct artifact_check;
int service_artifact_check(const struct service *service, const struct caller *caller,
                           const char *sha256, struct artifact_check **ret_check, error *err);

/* `done` is called with the cause of a failure, or NULL, and the check is gone then; done NULL:
 * no request waits. */
void artifact_check_await(struct artifact_check *check, void (*done)(void *user, const error *why),
                          void *user);

/* After service_artifact_check(). Fails  ERR_NOT_FOUND  also for one of another tenant, and a
 * damaged one. */
int service_artifact_open(const struct service *service, const struct caller *caller,
                          const char *sha256, struct artifact_file *ret_file, error *err);
