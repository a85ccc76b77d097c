/* checkpoints.c - /v1/sessions/{id}/checkpoints: translates HTTP into the calls of
 * service_checkpoints.h. */
#include "engine/service/service_checkpoints.h"

#include "base/table.h"
#include "doors/rest/rest.h"
#include "json/writer.h"

#include <microhttpd.h>

static void on_closed(struct exchange *exchange)
{
    checkpoint_wait_done(exchange->user);
}

/* Answers with the result, now or when the handler is called again. */
static void follow(struct exchange *exchange, int begun, struct checkpoint_wait *wait, error *err)
{
    struct bytes json = { 0 };
    if (begun == 0) {
        exchange->user = wait;
        exchange->closed = on_closed;
        if (!checkpoint_wait_is_over(wait)) {
            exchange_wait(exchange);
            return;
        }
        begun = checkpoint_wait_result(wait, &json, err);
    }
    if (begun < 0)
        exchange_fail(exchange, err);
    else
        exchange_answer(exchange, exchange->route->status ? exchange->route->status : MHD_HTTP_OK,
                        &json);
}

static void post_checkpoint(struct exchange *exchange)
{
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    struct checkpoint_wait *wait = exchange->user;
    auto_json json = NULL;
    error err;
    int begun = 0;
    if (!wait) {
        struct session *session = exchange_session(exchange);
        if (!session)
            return;
        begun = exchange_take_json(exchange, &json, &err);
        if (begun == 0)
            begun = service_checkpoint_make(
                &(struct checkpoint_asker){ &exchange->caller, session, &waker }, json, &wait,
                &err);
    }
    follow(exchange, begun, wait, &err);
}

static void post_rollback(struct exchange *exchange)
{
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    struct checkpoint_wait *wait = exchange->user;
    error err;
    int begun = 0;
    if (!wait) {
        struct session *session = exchange_session(exchange);
        if (!session)
            return;
        begun = exchange_fields(exchange, NULL, 0, &err);
        if (begun == 0)
            begun = service_session_roll_back(
                &(struct checkpoint_asker){ &exchange->caller, session, &waker },
                exchange->parameters[1], &wait, &err);
    }
    follow(exchange, begun, wait, &err);
}

static void get_checkpoints(struct exchange *exchange)
{
    const struct session *session = exchange_tombstone(exchange);
    if (!session)
        return;
    struct bytes json = json_begin('{');
    json_key(&json, "checkpoints");
    service_checkpoints_write(session, &json);
    exchange_end_json(exchange, &json, "}");
}

static void delete_checkpoint(struct exchange *exchange)
{
    struct session *session = exchange_session(exchange);
    struct bytes json = { 0 };
    error err;
    if (!session)
        return;
    int result = service_checkpoint_remove(session, exchange->parameters[1], &json, &err);
    exchange_answer_or_fail(exchange, result, &json, &err);
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/sessions/{id}/checkpoints", BODY_JSON, post_checkpoint, "Checkpoints this moment of a session: its files, and the variables of one of its contexts", .status = 201, .takes = "CheckpointRequest", .may_lack_body = true, .gives = "Checkpoint", .awaits = AWAITS_STANDING, .operation = "createCheckpoint" },
    { "GET",    "/v1/sessions/{id}/checkpoints", BODY_NONE, get_checkpoints, "The checkpoints of a session, the newest first", .gives = "CheckpointList", .awaits = AWAITS_STANDING, .operation = "listCheckpoints" },
    { "DELETE", "/v1/sessions/{id}/checkpoints/{checkpoint}", BODY_NONE, delete_checkpoint, "Removes a checkpoint", .gives = "Checkpoint", .awaits = AWAITS_STANDING, .operation = "removeCheckpoint" },
    { "POST",   "/v1/sessions/{id}/checkpoints/{checkpoint}/rollback", BODY_JSON, post_rollback, "Makes the session what it was at a checkpoint; whatever else runs in it ends", .takes = "RollbackRequest", .may_lack_body = true, .gives = "Session", .awaits = AWAITS_BOTH, .operation = "rollBackSession" },
    /* clang-format on */
};

const struct route_table session_checkpoint_routes = { "checkpoints", rows, COUNT_OF(rows),
                                                       RIGHT_SESSIONS,
                                                       .text = "States of a session to return to" };
