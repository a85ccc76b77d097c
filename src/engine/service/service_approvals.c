/* service_approvals.c - see service_approvals.h. */
#include "engine/service/service_approvals.h"

#include "engine/approval/approvals.h"

#include <stdlib.h>
#include <string.h>

_Static_assert((int) APPROVAL_CURSOR_SIZE == (int) APPROVAL_ID_SIZE &&
                   (int) APPROVAL_REASON_MAX == (int) APPROVAL_REASON_SIZE - 1,
               "as approvals.h has it");

int service_approval(const struct service *service, const struct caller *caller, const char *id,
                     struct bytes *out, error *err)
{
    struct approval approval;
    if (approvals_find(service->approvals, caller->account, id, &approval, err) < 0)
        return -1;
    return approval_write(service->approvals, &approval, true, out, err);
}

int service_approval_is_pending(const struct service *service, const struct caller *caller,
                                const char *id, bool *ret_is_pending, error *err)
{
    struct approval approval;
    if (approvals_find(service->approvals, caller->account, id, &approval, err) < 0)
        return -1;
    *ret_is_pending = approval.state == APPROVAL_PENDING;
    return 0;
}

/* --- lists ------------------------------------------------------------------------------------ */

struct page {
    struct approvals *approvals;
    struct approval_list *list;
    struct bytes *out;
    char last[APPROVAL_ID_SIZE];
    error err; /* code ERR_NONE: no failure */
};

/* One more than a page is requested, to see whether there is a next page. */
static void add_row(void *context, const struct approval *approval)
{
    struct page *page = context;
    struct approval_list *list = page->list;
    if (list->count == list->max) {
        memcpy(list->next, page->last, sizeof list->next);
        return;
    }
    list->count++;
    memcpy(page->last, approval->id, sizeof page->last);
    if (page->err.code == ERR_NONE)
        (void) approval_write(page->approvals, approval, false, page->out, &page->err);
}

static int read_state(const char *name, enum approval_state *ret_state, error *err)
{
    *ret_state = APPROVAL_STATES;
    if (!name || strcmp(name, "all") == 0)
        return 0;
    *ret_state = approval_state_of(name);
    return *ret_state < APPROVAL_STATES
               ? 0
               : fail(err, ERR_BAD_REQUEST,
                      "state '%.40s' does not exist; it is one of pending, approved, denied, "
                      "expired, used, revoked, all",
                      name);
}

int service_list_approvals(const struct service *service, const struct caller *caller,
                           struct approval_list *list, struct bytes *out, error *err)
{
    struct page page = { .approvals = service->approvals, .list = list, .out = out };
    struct approval_listing listing = {
        .max = list->max + 1, .after = list->cursor, .each = add_row, .context = &page
    };
    list->count = 0;
    list->next[0] = '\0';
    if (read_state(list->state, &listing.state, err) < 0 ||
        approvals_list(service->approvals, caller->account, &listing, err) < 0)
        return -1;
    if (page.err.code == ERR_NONE)
        return 0;
    *err = page.err;
    return -1;
}

/* --- a decision ------------------------------------------------------------------------------- */

static int read_scope(const char *name, uint32_t *ret_reach, error *err)
{
    *ret_reach = 0;
    for (uint32_t bit = REACH_ONCE; *name && bit <= REACH_TIME; bit <<= 1)
        if (strcmp(approval_scope_name(bit), name) == 0)
            *ret_reach = bit;
    if (*name && *ret_reach == 0)
        return fail(err, ERR_BAD_REQUEST, "'scope' must be once, code, session or time");
    return 0;
}

static int take_decision(struct approvals *approvals, const char *word,
                         struct approval_decision *decision, struct approval *ret_approval,
                         error *err)
{
    decision->approves = strcmp(word, "approve") == 0;
    if (strcmp(word, "revoke") == 0)
        return approvals_revoke(approvals, decision, ret_approval, err);
    if (!decision->approves && strcmp(word, "deny") != 0)
        return fail(err, ERR_BAD_REQUEST, "'decision' must be approve, deny or revoke");
    return approvals_decide(approvals, decision, ret_approval, err);
}

int service_decide_approval(const struct service *service, const struct caller *caller,
                            const struct approval_order *order, struct bytes *out, error *err)
{
    struct approval approval;
    int64_t until_ms = order->until_s > 0 ? wall_clock_ms() + (int64_t) order->until_s * 1000 : 0;
    struct approval_decision decision = { caller->account, order->id, .until_ms = until_ms,
                                          .reason = order->reason };
    if (read_scope(order->scope, &decision.reach, err) < 0 ||
        take_decision(service->approvals, order->decision, &decision, &approval, err) < 0)
        return -1;
    return approval_write(service->approvals, &approval, true, out, err);
}

/* --- waiting ---------------------------------------------------------------------------------- */

struct approval_wait {
    const struct service *service;
    struct approval_listener listener;
    struct waker waker;
    deadline end;
};

static void on_changed(void *context)
{
    const struct approval_wait *wait = context;
    wait->waker.woken(wait->waker.context);
}

struct approval_wait *service_await_approvals(const struct service *service, int64_t wait_ms,
                                              const struct waker *waker)
{
    struct approval_wait *wait = calloc(1, sizeof *wait);
    if (!wait)
        return NULL;
    *wait =
        (struct approval_wait){ service, { wait, on_changed, NULL }, *waker, deadline_in(wait_ms) };
    approvals_listen(service->approvals, &wait->listener);
    return wait;
}

bool approval_wait_is_over(const struct approval_wait *wait)
{
    return deadline_has_passed(wait->end) || wait->service->runs->is_closing;
}

deadline approval_wait_end(const struct approval_wait *wait)
{
    return wait->end;
}

void approval_wait_done(struct approval_wait *wait)
{
    approvals_unlisten(wait->service->approvals, &wait->listener);
    free(wait);
}

void service_approval_page(const struct service *service, const char *id, struct bytes *out)
{
    approval_page(service->approval_url, id, out);
}
