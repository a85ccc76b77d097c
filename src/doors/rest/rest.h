/* rest.h - the native door, /v1: shared by its handlers. */
#pragma once

#include "doors/http/http.h"
#include "json/field_table.h"

#include <stddef.h>

/* All tables of routes, ended by NULL; each is at the end of the file of its name. */
extern const struct route_table *const route_tables[];
extern const struct route_table run_routes;
extern const struct route_table artifact_routes;
extern const struct route_table session_routes;
extern const struct route_table session_checkpoint_routes;
extern const struct route_table context_routes;
extern const struct route_table file_routes;
extern const struct route_table process_routes;
extern const struct route_table port_routes;
extern const struct route_table list_routes;
extern const struct route_table metrics_routes;
extern const struct route_table receipt_routes;
extern const struct route_table approval_routes;
extern const struct route_table status_routes;
extern const struct route_table network_routes;

/* metrics.c: http_settings.ended. */
void metrics_request_ended(const struct exchange *exchange);

/* sessions.c */
/* The body as JSON; NULL: it is empty. */
int exchange_take_json(struct exchange *exchange, struct json_object **ret_json, error *err);
/* The same, read by a table (field_table.h); an empty body has no keys. */
int exchange_fields(struct exchange *exchange, const struct field *fields, size_t count,
                    error *err);
/* Both give NULL after they have answered. Every route of a session calls the first one or
 * sessions_enter(); routes that also serve ended sessions call the second. */
struct session *exchange_session(struct exchange *exchange);
struct session *exchange_tombstone(struct exchange *exchange);
void session_answer(struct exchange *exchange, struct session *session, unsigned status);

/* session_create.c */
void session_post(struct exchange *exchange);
void session_post_branch(struct exchange *exchange);
