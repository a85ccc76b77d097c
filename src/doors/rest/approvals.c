/* approvals.c - /v1/approvals: requests that wait for a person's decision, and decisions. With
 * ?wait= the answer comes after the decision. */
#include "engine/service/service_approvals.h"

#include "base/table.h"
#include "doors/rest/rest.h"
#include "json/writer.h"

enum { PAGE = 100 };

static void on_closed(struct exchange *exchange)
{
    approval_wait_done(exchange->user);
}

/* Returns whether there is time left: then a change calls the handler again. */
static bool waits(struct exchange *exchange)
{
    int64_t seconds = (int64_t) exchange_query_count(exchange, "wait", 0);
    const struct waker waker = { .woken = exchange_wake, .context = exchange };
    if (!exchange->user && seconds > 0) {
        exchange->user = service_await_approvals(exchange->service, seconds * 1000, &waker);
        if (exchange->user)
            exchange->closed = on_closed;
    }
    if (!exchange->user || approval_wait_is_over(exchange->user))
        return false;
    exchange_wait_until(exchange, approval_wait_end(exchange->user));
    return true;
}

static void get_approval(struct exchange *exchange)
{
    const char *id = exchange->parameters[0];
    struct bytes json = { 0 };
    bool is_pending;
    error err;
    int result =
        service_approval_is_pending(exchange->service, &exchange->caller, id, &is_pending, &err);
    if (result == 0 && is_pending && waits(exchange))
        return;
    if (result == 0)
        result = service_approval(exchange->service, &exchange->caller, id, &json, &err);
    exchange_answer_or_fail(exchange, result, &json, &err);
}

static void get_approvals(struct exchange *exchange)
{
    struct approval_list list = { .state = exchange_query(exchange, "state"),
                                  .max = exchange_query_count(exchange, "limit", PAGE),
                                  .cursor = exchange_query(exchange, "cursor") };
    struct bytes json = json_begin('{');
    error err;
    json_open_field(&json, "approvals", '[');
    int result = service_list_approvals(exchange->service, &exchange->caller, &list, &json, &err);
    if (result == 0 && list.count == 0 && waits(exchange)) {
        bytes_done(&json);
        return;
    }
    json_close(&json, ']');
    json_string_field(&json, "next_cursor", list.next[0] ? list.next : NULL);
    json_close(&json, '}');
    exchange_answer_or_fail(exchange, result, &json, &err);
}

static int decide(struct exchange *exchange, struct bytes *json, error *err)
{
    struct approval_order order = { .id = exchange->parameters[0] };
    auto_bytes decision = { 0 }, scope = { 0 }, reason = { 0 };
    const struct field fields[] = {
        { "decision", FIELD_TEXT, &decision, 16 },
        { "scope", FIELD_TEXT, &scope, 16 },
        { "reason", FIELD_TEXT, &reason, APPROVAL_REASON_MAX },
        { "until_seconds", FIELD_COUNT, &order.until_s, APPROVAL_UNTIL_MAX_S },
    };
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0)
        return -1;
    order.decision = bytes_text(&decision);
    order.scope = bytes_text(&scope);
    order.reason = bytes_text(&reason);
    return service_decide_approval(exchange->service, &exchange->caller, &order, json, err);
}

static void post_decision(struct exchange *exchange)
{
    struct bytes json = { 0 };
    error err;
    int result = decide(exchange, &json, &err);
    exchange_answer_or_fail(exchange, result, &json, &err);
}

static const struct route rows[] = {
    /* clang-format off */
    { "GET",  "/v1/approvals",             BODY_NONE, get_approvals, "What waits for a decision, and what was decided: a key with scope approve sees its tenant's, with admin the owner's too, others their own",
      .gives = "ApprovalList", .operation = "listApprovals",
      .query = QUERY({ "state", IN_QUERY, "=pending, approved, denied, expired, used, revoked, all", "only those" },
                     { "limit", IN_QUERY, "count 1..1000", "rows of a page; 100 if it is left out" },
                     { "cursor", IN_QUERY, "string", "`next_cursor` of the page before" },
                     { "wait", IN_QUERY, "count 0..300", "waits so many seconds for the first of them" }) },
    { "POST", "/v1/approvals/{id}:decide", BODY_JSON, post_decision, "Approves or denies, never what one has asked for oneself; or takes an approval back that was not used yet", RIGHT_APPROVE, .takes = "Decision", .gives = "Approval", .is_repeatable = true, .operation = "decideApproval" },
    { "GET",  "/v1/approvals/{id}",        BODY_NONE, get_approval,  "An approval, with everything that an approver must know; with ?wait= when it is decided",
      .gives = "Approval", .operation = "getApproval",
      .query = QUERY({ "wait", IN_QUERY, "count 0..300", "waits so many seconds for the decision" }) },
    { "POST", "/v1/approvals/{id}",        BODY_JSON, post_decision, "The same as approvals/{id}:decide", RIGHT_APPROVE, .takes = "Decision", .gives = "Approval", .is_repeatable = true, .operation = "updateApproval" },
    /* clang-format on */
};

const struct route_table approval_routes = { "approvals", rows, COUNT_OF(rows), RIGHT_ASKER,
                                             .text = "Runs that a person decides about first" };
