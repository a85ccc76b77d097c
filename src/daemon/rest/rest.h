/* rest.h - the native door, /v1: what its handlers share. */
#pragma once

#include "daemon/blobs.h"
#include "daemon/policies.h"
#include "daemon/rest/http.h"
#include "daemon/runs.h"
#include "daemon/sessions.h"
#include "daemon/templates.h"

#include <stddef.h>

/* What every door is given. */
struct door {
    struct runs *runs;
    struct sessions *sessions;
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

/* The exchange hears what the run says from now on; then, whenever it is called: the result or the
 * events, as the client has asked. With `owns_run` the run ends when the client hangs up. */
int exchange_join_run(struct exchange *exchange, struct run *run, bool owns_run, error *err);
void exchange_tell_run(struct exchange *exchange);

/* sessions.c */
struct session *exchange_session(struct exchange *exchange); /* NULL: that was answered */
void post_session(struct exchange *exchange);
void get_sessions(struct exchange *exchange);
void get_session(struct exchange *exchange);
void patch_session(struct exchange *exchange);
void delete_session(struct exchange *exchange);

/* contexts.c */
void post_context(struct exchange *exchange);
void get_contexts(struct exchange *exchange);
void delete_context(struct exchange *exchange);
void post_cell(struct exchange *exchange);
void post_interrupt(struct exchange *exchange);
void post_restart(struct exchange *exchange);

/* lists.c */
void get_health(struct exchange *exchange);
void get_policies(struct exchange *exchange);
void get_templates(struct exchange *exchange);
void get_limits(struct exchange *exchange);
