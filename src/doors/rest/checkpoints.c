/* checkpoints.c - /v1/sessions/{id}/marks: translates HTTP into the calls of checkpoints.h and
 * rollback.h. */
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

/* What an exchange waits for: a mark that is made, or a session on its way back. */
struct wait {
    struct exchange *exchange;
    struct session *session; /* of the way back */
    struct mark *mark;       /* that is made; NULL once it is over */
    bool is_over, has_waited;
    error failure; /* code ERR_NONE: it went well */
    struct bytes json;
};

static void answer_mark(struct exchange *exchange, const struct mark *mark, unsigned status)
{
    struct bytes json = { 0 };
    mark_write(mark, &json);
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
    if (wait->mark) /* a mark whose maker has gone before it was there belongs to nobody */
        mark_remove(wait->mark);
    if (wait->session && !wait->is_over)
        rollback_unheard(wait->session, wait);
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

static void on_marked(void *user, struct mark *mark, const error *why)
{
    struct wait *wait = user;
    wait->mark = NULL;
    if (!why)
        mark_write(mark, &wait->json);
    be_over(wait, why);
}

static int make(struct exchange *exchange, struct session *session, struct wait *wait, error *err)
{
    char name[MARK_NAME_SIZE] = "";
    auto_bytes context = { 0 };
    auto_bytes named = { 0 };
    const struct field fields[] = {
        { "name", FIELD_TEXT, &named, MARK_NAME_SIZE - 1 },
        { "context", FIELD_TEXT, &context, CONTEXT_ID_SIZE - 1 },
    };
    struct mark_order order = {
        .name = name, .asker = exchange->account, .told = on_marked, .user = wait
    };
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0)
        return -1;
    if (strspn(bytes_text(&named), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                   "0123456789_-") != named.size ||
        strncmp(bytes_text(&named), "mrk_", 4) == 0)
        return fail(err, ERR_BAD_REQUEST,
                    "a mark's name is made of letters, digits, '-' and '_', and does not begin "
                    "with mrk_");
    memcpy(name, bytes_text(&named), named.size + 1);
    const char *wanted = context.size > 0 ? bytes_text(&context) : NULL;
    if (branching_choose(session, wanted, &order.context, err) < 0)
        return -1;
    return mark_make(session, &order, &wait->mark, err);
}

static void post_mark(struct exchange *exchange)
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

static void get_marks(struct exchange *exchange)
{
    const struct session *session = exchange_tombstone(exchange);
    struct bytes json = { 0 };
    if (!session)
        return;
    json_open(&json, '{');
    json_key(&json, "marks");
    marks_write(session, &json);
    json_close(&json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static struct mark *exchange_mark(struct exchange *exchange, struct session *session)
{
    struct mark *mark = NULL;
    error err;
    if (session && mark_find(session, exchange->parameters[1], &mark, &err) < 0)
        exchange_fail(exchange, &err);
    return mark;
}

static void delete_mark(struct exchange *exchange)
{
    struct mark *mark = exchange_mark(exchange, exchange_session(exchange));
    if (!mark)
        return;
    answer_mark(exchange, mark, MHD_HTTP_OK);
    mark_remove(mark);
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
        struct mark *mark = exchange_mark(exchange, session);
        if (!mark)
            return;
        wait = wait_new(exchange, &err);
        const struct rollback_order order = {
            .mark = mark, .asker = exchange->account, .told = on_rolled_back, .user = wait
        };
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
    { "POST",   "/v1/sessions/{id}/marks", BODY_JSON, post_mark, "Marks this moment of a session: its files, and the variables of one of its contexts", .status = 201, .takes = "MarkRequest", .may_lack_body = true, .gives = "Mark" },
    { "GET",    "/v1/sessions/{id}/marks", BODY_NONE, get_marks, "The marks of a session, the newest first", .gives = "MarkList" },
    { "DELETE", "/v1/sessions/{id}/marks/{mark}", BODY_NONE, delete_mark, "Removes a mark", .gives = "Mark" },
    { "POST",   "/v1/sessions/{id}/marks/{mark}/rollback", BODY_JSON, post_rollback, "Makes the session what it was at a mark; whatever else runs in it ends", .takes = "RollbackRequest", .may_lack_body = true, .gives = "Session", .awaits = AWAITS_BOTH },
    /* clang-format on */
};

const struct route_table mark_routes = { "marks", rows, COUNT_OF(rows), RIGHT_SESSIONS };
