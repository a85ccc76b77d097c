/* session_create.c - begins a session within what its policy grants, and changes its deadlines. */
#include "engine/session/session_internal.h"

#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/session/session_tombstones.h"
#include "policy/policy_permits.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void session_choose_id(char id[SESSION_ID_SIZE])
{
    unsigned char random[16];
    randombytes_buf(random, sizeof random);
    (void) snprintf(id, SESSION_ID_SIZE, "ses_");
    (void) sodium_bin2hex(id + 4, SESSION_ID_SIZE - 4, random, sizeof random);
}

/* The bound of the policy; 0: none. */
static uint64_t bound_of(const struct session *session, enum policy_session_bound bound)
{
    return session->plan.policy->sessions.values[bound];
}

static int grant_ms(const struct session *session, const char *name, uint64_t asked_ms,
                    enum policy_session_bound bound, error *err)
{
    uint64_t max_ms = bound_of(session, bound);
    if (max_ms == 0 || asked_ms <= max_ms)
        return 0;
    return fail(err, ERR_LIMIT, "%s %llu is more than the %llu that policy %s allows; ask for less",
                name, (unsigned long long) (asked_ms / 1000), (unsigned long long) (max_ms / 1000),
                session->plan.policy->name);
}

static uint64_t usual_ms(const struct session *session, uint64_t usual,
                         enum policy_session_bound bound)
{
    uint64_t max_ms = bound_of(session, bound);
    return max_ms != 0 && max_ms < usual ? max_ms : usual;
}

/* A time to live counts from now, and does not exceed the age that the policy allows. */
static int grant_time(struct session *session, const struct session_request *request, error *err)
{
    uint64_t lived_ms = (uint64_t) (now_ms() - session->began_at);
    if (request->has_idle &&
        grant_ms(session, "idle_seconds", request->idle_ms, SESSIONS_IDLE, err) < 0)
        return -1;
    if (request->has_ttl &&
        grant_ms(session, "ttl_seconds", request->ttl_ms + lived_ms, SESSIONS_AGE, err) < 0)
        return -1;
    if (request->has_idle)
        session->idle_ms = request->idle_ms;
    if (request->has_ttl)
        session->age_ends = deadline_in((int64_t) request->ttl_ms);
    return 0;
}

static int grant_memory(struct session *session, const struct session_request *request, error *err)
{
    uint64_t max = bound_of(session, SESSIONS_MEMORY), asked = session->plan.limits.memory;
    if (max == 0 || asked <= max)
        return 0;
    if (request->place->limits.given & (UINT64_C(1) << LIMIT_memory))
        return fail(err, ERR_LIMIT,
                    "limits.memory_bytes %llu is more than the %llu that policy %s gives sessions",
                    (unsigned long long) asked, (unsigned long long) max,
                    session->plan.policy->name);
    session->plan.limits.memory = max;
    return 0;
}

/* One key must not use every sandbox of the machine for its sessions. */
static int check_number(const struct session *session, error *err)
{
    struct account *account = session->account;
    struct accounts *accounts = session->sessions->runs->accounts;
    uint32_t of_policy = 0;
    uint64_t max = bound_of(session, SESSIONS_MAX);
    for (const struct session *other = session->sessions->newest; other; other = other->older) {
        if (other->state == SESSION_ENDED)
            continue;
        of_policy += strcmp(other->plan.policy->name, session->plan.policy->name) == 0;
    }
    if (max != 0 && of_policy >= max)
        return fail(err, ERR_BUSY, "policy %s allows %llu sessions, and as many are alive; end one",
                    session->plan.policy->name, (unsigned long long) max);
    if (account_check_day(accounts, account, err) < 0)
        return -1;
    accounts->slots = session->sessions->pool->slots;
    if (account_is_at_share(accounts, account))
        return account_refuse_slot(accounts, account, err);
    if (account->turn.active_max == 0 || account->sessions < account->turn.active_max)
        return 0;
    return fail(err, ERR_BUSY, "key %s has %u sessions, and may have no more; end one of them",
                account->key.id, account->sessions);
}

static int fill_in(struct session *session, struct session_request *request, error *err)
{
    const struct sessions *sessions = session->sessions;
    if (run_plan_grant_place(&session->plan, request->place, sessions->policies,
                             sessions->templates, err) < 0 ||
        account_check_policy(session->account, session->plan.policy->name, err) < 0 ||
        (session->plan.network == POLICY_NETWORK_RULES &&
         network_demand(sessions->runs->network, session->plan.policy->name, err) < 0) ||
        policy_permits_session(session->plan.policy, err) < 0 || check_number(session, err) < 0)
        return -1;
    session->created_ms = wall_clock_ms();
    session->began_at = now_ms();
    session->idle_ms = usual_ms(session, UINT64_C(10) * 60 * 1000, SESSIONS_IDLE);
    session->age_ends =
        deadline_in((int64_t) usual_ms(session, UINT64_C(24) * 60 * 60 * 1000, SESSIONS_AGE));
    if (grant_time(session, request, err) < 0 || grant_memory(session, request, err) < 0)
        return -1;
    session->metadata = request->metadata ? json_object_get(request->metadata) : NULL;
    if (request->id)
        (void) snprintf(session->id, sizeof session->id, "%s", request->id);
    else
        session_choose_id(session->id);
    request->id = NULL; /* borrowed from the caller */
    return 0;
}

static int tell_begin(const struct session *session, error *err)
{
    const struct api_key *key = &session->account->key;
    const struct event_field fields[] = {
        { "context", session->parent_context, 0 },
        { "key", key->id[0] ? key->id : "owner", 0 },
        { "checkpoint", session->parent_checkpoint, 0 },
        { "parent", session->parent, 0 },
        { "session", session->id, 0 },
        { "tenant", key->tenant, 0 },
        { 0 },
    };
    if (session_write_log(session, "session.opened", err) < 0)
        return -1;
    return session->parent[0] ? session_write_event(session, "session.branched", fields, err) : 0;
}

static int begin_from(struct session *session, const struct session_source *source, error *err)
{
    for_each_activity(activity, session->sessions)
        if (source && (*activity)->begin && (*activity)->begin(session, source, err) < 0)
            return -1;
    return 0;
}

int session_create(struct sessions *sessions, struct session_request *request,
                   const struct session_source *source, struct session **ret_session, error *err)
{
    sessions_forget_old(sessions);
    struct session *session = calloc(1, sizeof *session);
    if (!session) {
        session_request_done(request);
        return fail(err, ERR_SYSTEM, "no memory for a session");
    }
    session->sessions = sessions;
    session->account = request->place->account;
    assert(session->account);
    (void) snprintf(session->owner, sizeof session->owner, "%s", session->account->owner);
    session->request = *request;
    *request = (struct session_request){ 0 };
    bool is_admitted = account_check_log(sessions->runs->accounts, session->account, err) == 0;
    if (!is_admitted)
        log_event(SESSION_REFUSED, TEXT("cause", err->text));
    else if (sessions->runs->is_closing)
        (void) fail(err, ERR_UNAVAILABLE, "gloveboxd is ending; try again when it is back");
    else if (!sessions->pool->spawner->is_open)
        (void) fail(err, ERR_UNAVAILABLE,
                    "glovebox-spawner has ended and is being restarted; try again in a second");
    else if ((!sessions->runs->receipts ||
              receipts_have_room(sessions->runs->receipts, err) == 0) &&
             fill_in(session, &session->request, err) == 0 &&
             begin_from(session, source, err) == 0) {
        sessions_list(sessions, session);
        session->start_ends = deadline_in(SESSION_START_MS);
        if (tell_begin(session, err) == 0 && session_lease(session, err) == 0) {
            log_event(SESSION_CREATED, TEXT("session", session->id),
                      TEXT("policy", session->plan.policy->name));
            sessions_look_in_time(session);
            tombstones_note_begin(&sessions->tombstones, session);
            *ret_session = session;
            return 0;
        }
        sessions->alive--;
        session->account->sessions--;
        session_forget(sessions, session);
        return -1;
    }
    (void) json_object_put(session->metadata);
    session_request_done(&session->request);
    run_plan_done(&session->plan);
    template_release(session->plan.template);
    free(session);
    return -1;
}

int session_change(struct session *session, struct session_request *request, error *err)
{
    if (session->state == SESSION_ENDED)
        return fail(err, ERR_CONFLICT, "the session has ended: %s", session->why.text);
    if (session->state == SESSION_PAUSED && (request->has_idle || request->has_ttl))
        return fail(err, ERR_CONFLICT,
                    "the deadlines of a paused session cannot be changed; resume it first");
    if (grant_time(session, request, err) < 0)
        return -1;
    if (request->metadata) {
        (void) json_object_put(session->metadata);
        session->metadata = json_object_get(request->metadata);
    }
    session_touch(session);
    sessions_look_in_time(session);
    return 0;
}
