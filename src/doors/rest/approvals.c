/* approvals.c - /v1/approvals: translates HTTP into the calls of approvals.h. Who waits for a
 * decision asks with ?wait= and is answered when it has come. */
#include "engine/approval/approvals.h"

#include "base/clock.h"
#include "base/table.h"
#include "doors/rest/openapi/openapi.h"
#include "doors/rest/rest.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>

enum { WAIT_MAX_S = 300, PAGE = 100, PAGE_MAX = 1000, UNTIL_MAX_S = 30 * 24 * 3600 };

/* What an exchange holds while nothing has been decided. */
struct wait {
    struct approvals *approvals;
    struct approval_listener listener;
    deadline patience;
};

static void on_changed(void *context)
{
    exchange_wake(context);
}

static void leave(struct exchange *exchange)
{
    struct wait *wait = exchange->user;
    approvals_unlisten(wait->approvals, &wait->listener);
    free(wait);
}

/* Is there patience left? Then it waits: `serve` is called again when something has changed. */
static bool waits(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct wait *wait = exchange->user;
    uint64_t seconds = 0;
    error err;
    if (!wait) {
        if (exchange_query_count(exchange, "wait", WAIT_MAX_S, 0, &seconds, &err) < 0 ||
            seconds == 0 || !(wait = calloc(1, sizeof *wait)))
            return false;
        wait->approvals = service->approvals;
        wait->listener = (struct approval_listener){ exchange, on_changed, NULL };
        wait->patience = deadline_in((int64_t) seconds * 1000);
        approvals_listen(wait->approvals, &wait->listener);
        exchange->user = wait;
        exchange->closed = leave;
    }
    if (deadline_has_passed(wait->patience) || service->runs->is_closing)
        return false;
    exchange_wait_until(exchange, wait->patience);
    return true;
}

static int check_wait(const struct exchange *exchange, error *err)
{
    uint64_t unused;
    return exchange_query_count(exchange, "wait", WAIT_MAX_S, 0, &unused, err);
}

static void answer_approval(struct exchange *exchange, const struct approval *approval)
{
    const struct service *service = exchange->service;
    struct bytes json = { 0 };
    error err;
    if (approval_write(service->approvals, approval, true, &json, &err) < 0) {
        bytes_done(&json);
        exchange_fail(exchange, &err);
        return;
    }
    exchange_answer(exchange, MHD_HTTP_OK, &json);
}

static void get_approval(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct approval approval;
    error err;
    if (check_wait(exchange, &err) < 0 ||
        approvals_find(service->approvals, exchange->caller.account, exchange->parameters[0],
                       &approval, &err) < 0)
        exchange_fail(exchange, &err);
    else if (approval.state != APPROVAL_PENDING || !waits(exchange))
        answer_approval(exchange, &approval);
}

struct page {
    struct approvals *approvals;
    struct bytes json;
    uint64_t count;
    char last[APPROVAL_ID_SIZE];
    error err; /* code ERR_NONE while all is well */
};

static void add_row(void *context, const struct approval *approval)
{
    struct page *page = context;
    page->count++;
    memcpy(page->last, approval->id, sizeof page->last);
    if (page->err.code == ERR_NONE)
        (void) approval_write(page->approvals, approval, false, &page->json, &page->err);
}

static int read_listing(const struct exchange *exchange, struct approval_listing *listing,
                        error *err)
{
    const char *state = exchange_query(exchange, "state");
    listing->state = APPROVAL_STATES;
    if (state && strcmp(state, "all") != 0) {
        listing->state = approval_state_of(state);
        if (listing->state == APPROVAL_STATES)
            return fail(err, ERR_BAD_REQUEST,
                        "state '%.40s' does not exist; it is one of pending, approved, denied, "
                        "expired, used, revoked, all",
                        state);
    }
    listing->after = exchange_query(exchange, "after");
    return exchange_query_count(exchange, "limit", PAGE_MAX, PAGE, &listing->max, err);
}

static void get_approvals(struct exchange *exchange)
{
    const struct service *service = exchange->service;
    struct page page = { .approvals = service->approvals };
    struct approval_listing listing = { .each = add_row, .context = &page };
    json_open(&page.json, '{');
    json_key(&page.json, "approvals");
    json_open(&page.json, '[');
    if (check_wait(exchange, &page.err) < 0 || read_listing(exchange, &listing, &page.err) < 0 ||
        approvals_list(service->approvals, exchange->caller.account, &listing, &page.err) < 0 ||
        page.err.code != ERR_NONE) {
        bytes_done(&page.json);
        exchange_fail(exchange, &page.err);
        return;
    }
    if (page.count == 0 && waits(exchange)) {
        bytes_done(&page.json);
        return;
    }
    json_close(&page.json, ']');
    json_string_field(&page.json, "next", page.count == listing.max ? page.last : NULL);
    json_close(&page.json, '}');
    exchange_answer(exchange, MHD_HTTP_OK, &page.json);
}

static int take_decision(struct approvals *approvals, const char *word,
                         struct approval_decision *decision, struct approval *ret_approval,
                         error *err)
{
    decision->approves = strcmp(word, "approve") == 0;
    if (strcmp(word, "revoke") == 0)
        return approvals_revoke(approvals, decision, ret_approval, err);
    if (!decision->approves && strcmp(word, "deny") != 0)
        return fail(err, ERR_BAD_REQUEST, "'decision' is approve, deny or revoke");
    return approvals_decide(approvals, decision, ret_approval, err);
}

static int read_scope(const char *name, uint32_t *ret_reach, error *err)
{
    *ret_reach = 0;
    for (uint32_t bit = REACH_ONCE; *name && bit <= REACH_TIME; bit <<= 1)
        if (strcmp(approval_scope_name(bit), name) == 0)
            *ret_reach = bit;
    if (*name && *ret_reach == 0)
        return fail(err, ERR_BAD_REQUEST, "'scope' is once, code, session or time");
    return 0;
}

static int decide(struct exchange *exchange, struct approval *ret_approval, error *err)
{
    const struct service *service = exchange->service;
    struct approval_decision decision = { exchange->caller.account, exchange->parameters[0] };
    auto_bytes word = { 0 };
    auto_bytes scope = { 0 };
    auto_bytes reason = { 0 };
    uint64_t seconds = 0;
    const struct field fields[] = {
        { "decision", FIELD_TEXT, &word, 16 },
        { "scope", FIELD_TEXT, &scope, 16 },
        { "reason", FIELD_TEXT, &reason, APPROVAL_REASON_SIZE - 1 },
        { "until_seconds", FIELD_COUNT, &seconds, UNTIL_MAX_S },
    };
    if (exchange_fields(exchange, fields, COUNT_OF(fields), err) < 0 ||
        read_scope(bytes_text(&scope), &decision.reach, err) < 0)
        return -1;
    decision.until_ms = seconds > 0 ? wall_clock_ms() + (int64_t) seconds * 1000 : 0;
    decision.reason = bytes_text(&reason);
    return take_decision(service->approvals, bytes_text(&word), &decision, ret_approval, err);
}

static void post_decision(struct exchange *exchange)
{
    struct approval approval;
    error err;
    if (decide(exchange, &approval, &err) < 0)
        exchange_fail(exchange, &err);
    else
        answer_approval(exchange, &approval);
}

static const struct parameter list_query[] = {
    { "state", IN_QUERY, "=pending,approved,denied,expired,used,revoked,all", "only those" },
    { "limit", IN_QUERY, "count 1..1000", "rows at most; 100 if it is left out" },
    { "after", IN_QUERY, "string", "the page after this approval: `next` of the page before" },
    { "wait", IN_QUERY, "count 0..300", "waits so many seconds for the first of them" },
    { 0 },
};
static const struct parameter get_query[] = {
    { "wait", IN_QUERY, "count 0..300", "waits so many seconds for the decision" },
    { 0 },
};

static const struct route rows[] = {
    /* clang-format off */
    { "GET",  "/v1/approvals",             BODY_NONE, get_approvals, "What waits for a decision, and what was decided: a key with scope approve sees its tenant's, with admin the owner's too, others their own",
      .query = list_query, .gives = "ApprovalList" },
    { "GET",  "/v1/approvals/{id}",        BODY_NONE, get_approval,  "An approval, with everything that an approver must know; with ?wait= when it is decided",
      .query = get_query, .gives = "Approval" },
    { "POST", "/v1/approvals/{id}:decide", BODY_JSON, post_decision, "Approves or denies, never what one has asked for oneself; or takes an approval back that was not used yet", RIGHT_APPROVE, .takes = "Decision", .gives = "Approval", .is_repeatable = true },
    { "POST", "/v1/approvals/{id}",        BODY_JSON, post_decision, "The same", RIGHT_APPROVE, .takes = "Decision", .gives = "Approval", .is_repeatable = true },
    /* clang-format on */
};

const struct route_table approval_routes = { "approvals", rows, COUNT_OF(rows), RIGHT_ASKER };
