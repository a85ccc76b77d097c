/* rest.h - the native door, /v1: what its handlers share. */
#pragma once

#include "daemon/blobs.h"
#include "daemon/policies.h"
#include "daemon/rest/http.h"
#include "daemon/runs.h"
#include "daemon/templates.h"

#include <stddef.h>

/* What every door is given. */
struct door {
    struct runs *runs;
    struct policies *policies;
    struct templates *templates;
    struct blob_store *blobs;
};

extern const struct route routes[];
extern const size_t route_count;

/* runs.c */
void post_run(struct exchange *exchange);
void get_run(struct exchange *exchange);
void delete_run(struct exchange *exchange);
void get_run_events(struct exchange *exchange);
void get_artifact(struct exchange *exchange);

/* lists.c */
void get_health(struct exchange *exchange);
void get_policies(struct exchange *exchange);
void get_templates(struct exchange *exchange);
void get_limits(struct exchange *exchange);
