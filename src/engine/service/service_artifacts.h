/* service_artifacts.h - files made by runs, found by their hash. */
#pragma once

#include "base/error.h"
#include "engine/service/service.h"

#include <stdint.h>

struct artifact_file {
    int fd; /* the caller closes it */
    uint64_t size;
    const char *mime; /* valid until the next call of the service */
};

/* An artifact that an earlier daemon stored is hashed before it is opened. Returns 0 if that is not
 * needed, 1 if it is under way: call artifact_check_await() to wait. */
struct artifact_check;
int service_artifact_check(const struct service *service, const struct caller *caller,
                           const char *sha256, struct artifact_check **ret_check, error *err);

/* `done` is called with the cause of a failure, or NULL, and the check is freed. done NULL: no
 * request waits any more. */
void artifact_check_await(struct artifact_check *check, void (*done)(void *user, const error *why),
                          void *user);

/* After service_artifact_check(). Fails  ERR_NOT_FOUND  also if it is of another tenant, or
 * damaged. */
int service_artifact_open(const struct service *service, const struct caller *caller,
                          const char *sha256, struct artifact_file *ret_file, error *err);
