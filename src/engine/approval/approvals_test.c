/* approvals_test.c - who may decide on an approval and when, with a store in memory and a clock of
 * the test: each transition of approvals.h, and attempts to bypass it. */
#include "base/test.h"

#include "engine/approval/approvals.h"

#include "base/clock.h"

#include <string.h>

enum { MINUTE_MS = 60000 };

static int64_t now = INT64_C(1700000000000);
static uv_loop_t loop;
static struct approvals *approvals;
static unsigned changes;

int64_t __wrap_wall_clock_ms(void);
int64_t __wrap_wall_clock_ms(void)
{
    return now;
}

static void on_change(void *context)
{
    (void) context;
    changes++;
}

static struct approval_listener listener = { .changed = on_change };

static struct account account_of(const char *id, const char *tenant, uint32_t scopes)
{
    struct account account = { .key = { .scopes = scopes } };
    (void) snprintf(account.key.id, sizeof account.key.id, "%s", id);
    (void) snprintf(account.key.tenant, sizeof account.key.tenant, "%s", tenant);
    return account;
}

static struct account asker, approver, stranger, owner;

static void open_approvals(void)
{
    error err;
    const struct approvals_place place = { 0 };
    require(uv_loop_init(&loop) == 0 && approvals_open(&loop, &place, &approvals, &err) == 0,
            "approvals");
    asker = account_of("asker", "a", SCOPE_RUN);
    approver = account_of("approver", "a", SCOPE_APPROVE);
    stranger = account_of("stranger", "b", SCOPE_APPROVE);
    owner = account_of("", "", 0);
    changes = 0;
    approvals_listen(approvals, &listener);
}

static void close_approvals(void)
{
    approvals_unlisten(approvals, &listener);
    approvals_leave(approvals);
    (void) uv_run(&loop, UV_RUN_DEFAULT);
    approvals_close(approvals);
    expect(uv_loop_close(&loop) == 0, "a handle is left");
}

/* Submits the request of this number; `named`: the approval it names. */
static int ask(const struct account *account, unsigned char request, const char *named,
               struct approval *ret_approval, error *err)
{
    struct bytes card = { 0 };
    struct approval_question question = {
        .approval = { .policy = "ask",
                      .policy_digest = "p",
                      .session = "ses_1",
                      .reaches = REACH_ONCE | REACH_TIME,
                      .reasons = ASKS_ALWAYS | ASKS_CHECK },
        .named = named,
        .run = "run_1",
        .expires_in_ms = MINUTE_MS,
        .card = &card,
    };
    memset(question.approval.binding, request, APPROVAL_BINDING_SIZE);
    (void) snprintf(question.approval.asker, sizeof question.approval.asker, "%s", account->key.id);
    (void) snprintf(question.approval.tenant, sizeof question.approval.tenant, "%s",
                    account->key.tenant);
    bytes_add_text(&card, "{}");
    int result = approvals_ask(approvals, &question, ret_approval, err);
    bytes_done(&card);
    return result;
}

static int decide(const struct account *account, const char *id, bool approves, uint32_t reach,
                  error *err)
{
    struct approval unused;
    struct approval_decision decision = {
        .account = account, .id = id, .approves = approves, .reach = reach
    };
    return approvals_decide(approvals, &decision, &unused, err);
}

static enum approval_state state_of(const char *id)
{
    struct approval found = { .state = APPROVAL_STATES };
    error err;
    expect(approvals_find(approvals, &owner, id, &found, &err) == 0, "%s: %s", id, err.text);
    return found.state;
}

TEST(an_approval_for_once_is_spent_by_the_request_that_it_was_asked_for)
{
    struct approval asked, again;
    error err;
    open_approvals();
    require(ask(&asker, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    expect(ask(&asker, 1, NULL, &again, &err) == APPROVAL_PENDING && !strcmp(asked.id, again.id),
           "the same request waits for the same decision");
    expect(approvals_find(approvals, &owner, asked.id, &again, &err) == 0 &&
               again.reasons == (ASKS_ALWAYS | ASKS_CHECK) &&
               again.reaches == (REACH_ONCE | REACH_TIME),
           "reasons %x, reaches %x", again.reasons, again.reaches);
    expect(decide(&approver, asked.id, true, 0, &err) == 0, "%s", err.text);
    expect(changes == 2, "it was told %u times", changes);
    expect(ask(&asker, 2, asked.id, &again, &err) == -1 && err.code == ERR_CONFLICT,
           "another request is run under it");
    expect(ask(&asker, 1, NULL, &again, &err) == APPROVAL_USED, "it may begin");
    expect(state_of(asked.id) == APPROVAL_USED, "it is not spent");
    expect(ask(&asker, 1, asked.id, &again, &err) == -1 && err.code == ERR_CONFLICT,
           "it is good twice");
    expect(ask(&asker, 1, NULL, &again, &err) == APPROVAL_PENDING &&
               strcmp(asked.id, again.id) != 0,
           "without its name it is asked for anew");
    close_approvals();
}

TEST(requests_of_the_same_key_or_of_other_tenants_cannot_be_decided_on)
{
    struct approval asked;
    error err;
    struct account both = account_of("asker", "a", SCOPE_RUN | SCOPE_APPROVE);
    open_approvals();
    require(ask(&both, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    expect(decide(&both, asked.id, true, 0, &err) == -1 && err.code == ERR_FORBIDDEN, "its own");
    expect(decide(&stranger, asked.id, true, 0, &err) == -1 && err.code == ERR_NOT_FOUND,
           "another tenant's");
    expect(decide(&approver, "apr_none", true, 0, &err) == -1 && err.code == ERR_NOT_FOUND, "none");
    expect(state_of(asked.id) == APPROVAL_PENDING, "it is decided");
    close_approvals();
}

TEST(what_is_not_decided_in_time_is_denied)
{
    struct approval asked, again;
    error err;
    open_approvals();
    require(ask(&asker, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    now += MINUTE_MS - 1;
    expect(state_of(asked.id) == APPROVAL_PENDING, "a moment too soon");
    now += 1;
    expect(decide(&approver, asked.id, true, 0, &err) == -1 && err.code == ERR_CONFLICT,
           "it is approved too late");
    expect(state_of(asked.id) == APPROVAL_EXPIRED, "it is state %u", state_of(asked.id));
    expect(ask(&asker, 1, asked.id, &again, &err) == APPROVAL_DENIED, "the named one is a no");
    close_approvals();
}

TEST(a_denial_holds_for_the_same_request_until_it_ends)
{
    struct approval asked, again;
    error err;
    open_approvals();
    require(ask(&asker, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    expect(decide(&approver, asked.id, false, 0, &err) == 0, "%s", err.text);
    expect(decide(&approver, asked.id, true, 0, &err) == -1 && err.code == ERR_CONFLICT,
           "it is decided twice");
    expect(ask(&asker, 1, NULL, &again, &err) == APPROVAL_DENIED, "it is asked for again");
    expect(ask(&asker, 2, NULL, &again, &err) == APPROVAL_PENDING, "another request is denied");
    now += MINUTE_MS;
    expect(ask(&asker, 1, NULL, &again, &err) == APPROVAL_PENDING, "a no for ever");
    close_approvals();
}

TEST(an_approval_reaches_no_further_than_its_policy_allows)
{
    struct approval asked, again;
    error err;
    open_approvals();
    require(ask(&asker, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    expect(decide(&approver, asked.id, true, REACH_SESSION, &err) == -1 &&
               err.code == ERR_FORBIDDEN,
           "for the session");
    expect(decide(&approver, asked.id, true, REACH_TIME, &err) == 0, "%s", err.text);
    expect(ask(&asker, 2, NULL, &again, &err) == APPROVAL_USED, "for a time: any request");
    expect(ask(&stranger, 2, NULL, &again, &err) == APPROVAL_PENDING, "of another key");
    now += MINUTE_MS;
    expect(ask(&asker, 3, NULL, &again, &err) == APPROVAL_PENDING, "after its time");
    close_approvals();
}

TEST(an_approval_is_taken_back_until_it_was_used)
{
    struct approval asked, again;
    error err;
    open_approvals();
    require(ask(&asker, 1, NULL, &asked, &err) == APPROVAL_PENDING, "it is asked for");
    struct approval_decision decision = { .account = &approver, .id = asked.id };
    expect(approvals_revoke(approvals, &decision, &again, &err) == -1 && err.code == ERR_CONFLICT,
           "what is pending is denied instead");
    expect(decide(&approver, asked.id, true, 0, &err) == 0, "%s", err.text);
    expect(approvals_revoke(approvals, &decision, &again, &err) == 0, "%s", err.text);
    expect(ask(&asker, 1, asked.id, &again, &err) == -1 && err.code == ERR_CONFLICT,
           "it still holds");
    expect(approvals_revoke(approvals, &decision, &again, &err) == -1 && err.code == ERR_CONFLICT,
           "it is taken back twice");
    close_approvals();
}

TEST(one_key_leaves_places_to_others)
{
    struct approval asked;
    error err;
    int result = 0;
    unsigned char request = 0;
    open_approvals();
    while (request < 100 &&
           (result = ask(&asker, ++request, NULL, &asked, &err)) == APPROVAL_PENDING)
        continue;
    expect(result == -1 && err.code == ERR_BUSY && request > 30 && request < 64, "%u wait",
           request);
    struct account second = account_of("second", "a", SCOPE_RUN);
    expect(ask(&second, 1, NULL, &asked, &err) == APPROVAL_PENDING, "another key: %s", err.text);
    expect(ask(&stranger, 1, NULL, &asked, &err) == APPROVAL_PENDING, "another tenant: %s",
           err.text);
    close_approvals();
}

TESTS(CASE(an_approval_for_once_is_spent_by_the_request_that_it_was_asked_for),
      CASE(requests_of_the_same_key_or_of_other_tenants_cannot_be_decided_on),
      CASE(what_is_not_decided_in_time_is_denied),
      CASE(a_denial_holds_for_the_same_request_until_it_ends),
      CASE(an_approval_reaches_no_further_than_its_policy_allows),
      CASE(an_approval_is_taken_back_until_it_was_used), CASE(one_key_leaves_places_to_others))
