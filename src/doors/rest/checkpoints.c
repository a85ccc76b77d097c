/* checkpoints.c - /v1/sessions/{id}/checkpoints: translates HTTP into the calls of checkpoints.h
 * and rollback.h. */
#include "engine/session/checkpoints.h"

#include "base/table.h"
#include "doors/rest/rest.h"
#include "engine/session/rollback.h"
#include "engine/session/session_registry.h"
#include "json/field_table.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

/* What an exchange waits for: a checkpoint that is made, or a session on its way back. */
struct wait {
    struct exchange *exchange;
    struct session *session;               /* of the way back */
    struct session_checkpoint *checkpoint; /* that is made; NULL once it is over */
    bool is_over, has_waited;
    error failure; /* code ERR_NONE: it went well */
    struct bytes json;
};

static void answer_mark(struct exchange *exchange, const struct session_checkpoint *checkpoint,
                        unsigned status)
{
    struct bytes json = { 0 };
    session_checkpoint_write(checkpoint, &json);
    exchange_answer(exchange, status, &json);
}

static void be_over(struct wait *wait, const error *why)
{
    wait->is_over = true;
    if (why)
        wait->failure = *why;
    if (wait->has_waited)
        exchange_wake(wait->exchange);
}

static void leave(struct exchange *exchange)
{
    struct wait *wait = exchange->user;
    if (wait->checkpoint) /* a checkpoint whose maker has gone before it was there belongs to nobody
                           */
        session_checkpoint_remove(wait->checkpoint);
    if (wait->session && !wait->is_over)
        rollback_unsubscribe(wait->session, wait);
    bytes_done(&wait->json);
    free(wait);
}

static struct wait *wait_new(struct exchange *exchange, error *err)
{
    struct wait *wait = calloc(1, sizeof *wait);
    if (!wait) {
        (void) fail(err, ERR_SYSTEM, "no memory to wait");
        return NULL;
    }
    wait->exchange = exchange;
    exchange->user = wait;
    exchange->closed = leave;
    return wait;
}

/* --- making -------------------------------------------------------------------------------------
 */

static void on_checkpoint(void *user, struct session_checkpoint *checkpoint, const error *why)
{
    struct wait *wait = user;
    wait->checkpoint = NULL;
    if (!why)
        session_checkpoint_write(checkpoint, &wait->json);
    be_over(wait, why);
}

static int make(struct exchange *exchange, struct session *session, struct wait *wait, error *err)
{
    char name[CHECKPOINT_NAME_SIZE] = "";
    auto_bytes context = { 0 };
    auto_bytes named = { 0 };
    const struct field fields[] = {
        { "name", FIELD_TEXT, &named, CHECKPOINT_NAME_SIZE - 1 },
        { "context", FIELD_TEXT, &context, CONTEXT_ID_SIZE - 1 },
    };
    struct session_checkpoint_order order = {
        .name = name, .asker = exchange->caller.account, .told = on_checkpoint, .user = wait
    };
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0)
        return -1;
    if (strspn(bytes_text(&named), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789_-") != named.size ||
        strncmp(bytes_text(&named), "ckp_", 4) == 0)
        return fail(
            err, ERR_BAD_REQUEST,
            "a checkpoint's name is made of letters, digits, '-' and '_', and does not begin "
            "with ckp_");
    memcpy(name, bytes_text(&named), named.size + 1);
    const char *wanted = context.size > 0 ? bytes_text(&context) : NULL;
    if (branch_choose(session, wanted, &order.context, err) < 0)
        return -1;
    return session_checkpoint_make(session, &order, &wait->checkpoint, err);
}

static void post_checkpoint(struct exchange *exchange)
{
    struct wait *wait = exchange->user;
    error err;
    if (!wait) {
        struct session *session = exchange_session(exchange);
        if (!session)
            return;
        wait = wait_new(exchange, &err);
        if (!wait || make(exchange, session, wait, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
        wait->has_waited = true;
        if (!wait->is_over) {
            exchange_wait(exchange);
            return;
        }
    }
    if (wait->failure.code != ERR_NONE)
        exchange_fail(exchange, &wait->failure);
    else
        exchange_answer(exchange, MHD_HTTP_CREATED, &wait->json);
}

/* --- the others ---------------------------------------------------------------------------------
 */

static void get_checkpoints(struct exchange *exchange)
{
    const struct session *session = exchange_tombstone(exchange);
    struct bytes json = { 0 };
    if (!session)
        return;
    json_open(&json, '{');
    json_key(&json, "checkpoints");
    checkpoints_write(session, &json);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static struct session_checkpoint *exchange_checkpoint(struct exchange *exchange,
                                                      struct session *session)
{
    struct session_checkpoint *checkpoint = NULL;
    error err;
    if (session && session_checkpoint_find(session, exchange->parameters[1], &checkpoint, &err) < 0)
        exchange_fail(exchange, &err);
    return checkpoint;
}

static void delete_checkpoint(struct exchange *exchange)
{
    struct session_checkpoint *checkpoint =
        exchange_checkpoint(exchange, exchange_session(exchange));
    if (!checkpoint)
        return;
    answer_mark(exchange, checkpoint, MHD_HTTP_OK);
    session_checkpoint_remove(checkpoint);
}

static void on_rolled_back(void *user, const error *why)
{
    be_over(user, why);
}

static void post_rollback(struct exchange *exchange)
{
    struct wait *wait = exchange->user;
    error err;
    if (!wait) {
        struct session *session = exchange_session(exchange);
        struct session_checkpoint *checkpoint = exchange_checkpoint(exchange, session);
        if (!checkpoint)
            return;
        wait = wait_new(exchange, &err);
        const struct rollback_order order = { .checkpoint = checkpoint,
                                              .asker = exchange->caller.account,
                                              .told = on_rolled_back,
                                              .user = wait };
        if (!wait || exchange_fields(exchange, NULL, 0, &err) < 0 ||
            session_roll_back(session, &order, &err) < 0) {
            exchange_fail(exchange, &err);
            return;
        }
        wait->session = session;
        wait->has_waited = true;
        if (!wait->is_over) {
            exchange_wait(exchange);
            return;
        }
    }
    if (wait->failure.code != ERR_NONE) {
        exchange_fail(exchange, &wait->failure);
        return;
    }
    session_write(wait->session, &wait->json);
    exchange_answer(exchange, MHD_HTTP_OK, &wait->json);
}

static const struct route rows[] = {
    /* clang-format off */
    { "POST",   "/v1/sessions/{id}/checkpoints", BODY_JSON, post_checkpoint, "Checkpoints this moment of a session: its files, and the variables of one of its contexts", .status = 201, .takes = "CheckpointRequest", .may_lack_body = true, .gives = "Checkpoint", .awaits = AWAITS_STANDING },
    { "GET",    "/v1/sessions/{id}/checkpoints", BODY_NONE, get_checkpoints, "The checkpoints of a session, the newest first", .gives = "CheckpointList", .awaits = AWAITS_STANDING },
    { "DELETE", "/v1/sessions/{id}/checkpoints/{checkpoint}", BODY_NONE, delete_checkpoint, "Removes a checkpoint", .gives = "Checkpoint", .awaits = AWAITS_STANDING },
    { "POST",   "/v1/sessions/{id}/checkpoints/{checkpoint}/rollback", BODY_JSON, post_rollback, "Makes the session what it was at a checkpoint; whatever else runs in it ends", .takes = "RollbackRequest", .may_lack_body = true, .gives = "Session", .awaits = AWAITS_BOTH },
    /* clang-format on */
};

const struct route_table session_checkpoint_routes = { "checkpoints", rows, COUNT_OF(rows),
                                                       RIGHT_SESSIONS };
