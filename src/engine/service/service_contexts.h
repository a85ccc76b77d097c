/* service_contexts.h - contexts of a session, and cells, which are runs in a context. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"
#include "engine/service/service.h"

#include <json.h>

struct context;
struct run;
struct session;

/* Takes the ContextRequest. Gives *ret_context, borrowed. */
int service_context_create(struct session *session, struct json_object *request,
                           struct context **ret_context, error *err);
/* Fails  ERR_NOT_FOUND. */
int service_context_find(struct session *session, const char *id, struct context **ret_context,
                         error *err);
/* Adds a Context of docs/api.md; an array of all contexts. */
void service_context_write(const struct context *context, struct bytes *out);
void service_contexts_write(const struct session *session, struct bytes *out);

void service_context_remove(struct context *context);
int service_context_restart(struct context *context, error *err);
/* Gives  *ret_interrupted: a cell was running. */
int service_context_interrupt(struct context *context, bool *ret_interrupted, error *err);

struct cell_order {
    const char *session, *context; /* ids */
    const char *id;                /* for the run; NULL: any */
    struct json_object *request;   /* CellRequest; taken */
};

/* Begins a cell for the caller, which need not be the session's owner. Gives *ret_run, borrowed. */
int service_cell_begin(const struct service *service, const struct caller *caller,
                       const struct cell_order *order, struct run **ret_run, error *err);
