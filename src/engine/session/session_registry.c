/* session_registry.c - which sessions there are, how many there may be, and when each one ends. */
#include "engine/session/session_registry.h"

#include "base/cleanup.h"
#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/review/output_check.h"
#include "engine/session/contexts.h"
#include "engine/session/session_tombstones.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOMBSTONES_MAX = 1000, START_MS = 20000 };

static void set_timer(struct sessions *sessions);

/* --- deadlines ----------------------------------------------------------------------------------
 */

static void look_at_deadlines(struct session *session)
{
    error why;
    bool is_filled = session->branching && session->sandbox; /* it has its own deadlines */
    if (session->state == SESSION_STARTING && !is_filled &&
        deadline_has_passed(session->start_ends)) {
        if (session->sandbox)
            (void) fail(&why, ERR_TIMEOUT, "its egress was not opened in time");
        else if (!session->waits_for_room)
            (void) fail(&why, ERR_BUSY,
                        "its sandbox was not built in %d s: the machine is busy, %u of %u sandbox "
                        "slots are taken; try again later",
                        START_MS / 1000, session->sessions->pool->in_use,
                        session->sessions->pool->slots);
        else
            (void) fail(
                &why, ERR_BUSY,
                "every sandbox slot of this machine is taken, and none became free in %d s; "
                "try again later, or end a session",
                START_MS / 1000);
        session_end(session, END_FAILED, &why);
    }
    if (session->state != SESSION_ENDED)
        session_charge(session);
    if (session->state == SESSION_PAUSED)
        session_look_at_pause(session);
    if (session->state == SESSION_RUNNING)
        session_look_at_day(session);
    if (session->state == SESSION_RUNNING)
        contexts_look(session);
    for_each_activity(activity, session->sessions)(*activity)->look(session);
    if (session->state != SESSION_ENDED)
        session_tell_deeds(session, false);
    unsigned holds = session_holds(session);
    if (session->state == SESSION_ENDED || (holds & SESSION_MUST_LIVE))
        return;
    if (session->delete_pending) { /* paused, too: nobody comes back to it */
        (void) fail(&why, ERR_CONFLICT, "somebody deleted it");
        session_end(session, END_DELETED, &why);
    } else if (session->state != SESSION_RUNNING) {
        return;
    } else if (session->age_ends.at_ms != 0 && deadline_has_passed(session->age_ends)) {
        (void) fail(&why, ERR_TIMEOUT,
                    "its time to live is over; ask for a longer ttl_seconds, or extend it with "
                    "PATCH while it lives");
        session_end(session, END_AGE, &why);
    } else if (session->holds == 0 && session->idle_ends.at_ms != 0 &&
               deadline_has_passed(session->idle_ends)) {
        if (holds & (SESSION_ROLLS_BACK | SESSION_IS_COPIED)) { /* somebody waits for that */
            session_touch(session);
            return;
        }
        (void) fail(&why, ERR_TIMEOUT,
                    "nobody has used it for %llu s; ask for a longer "
                    "idle_seconds, or touch it with PATCH",
                    (unsigned long long) (session->idle_ms / 1000));
        session_end(session, END_IDLE, &why);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct sessions *sessions = timer->data;
    for (struct session *session = sessions->newest, *older; session; session = older) {
        older = session->older;
        look_at_deadlines(session);
    }
    set_timer(sessions);
}

/* Looks at least once a second while there is a session: deadlines move at every use, and nobody
 * has to tell the timer. */
static void set_timer(struct sessions *sessions)
{
    enum { LOOK_MS = 1000 };
    if (sessions->alive == 0) {
        (void) uv_timer_stop(&sessions->timer);
        return;
    }
    int64_t left_ms = LOOK_MS;
    for (const struct session *session = sessions->newest; session; session = session->older) {
        if (session->state != SESSION_RUNNING || (session_holds(session) & SESSION_MUST_LIVE))
            continue; /* until its branch is done */
        int64_t age_ms = session->age_ends.at_ms ? deadline_left_ms(session->age_ends) : LOOK_MS;
        int64_t idle_ms = session->holds == 0 && session->idle_ends.at_ms
                              ? deadline_left_ms(session->idle_ends)
                              : LOOK_MS;
        left_ms = age_ms < left_ms ? age_ms : left_ms;
        left_ms = idle_ms < left_ms ? idle_ms : left_ms;
    }
    (void) uv_timer_start(&sessions->timer, on_timer, (uint64_t) left_ms, 0);
}

/* --- the table ----------------------------------------------------------------------------------
 */

static void end_activities(struct session *session)
{
    error why;
    (void) fail(&why, ERR_CONFLICT, "the session has ended");
    for_each_activity(activity, session->sessions)(*activity)->end(session, &why);
}

static void forget(struct sessions *sessions, struct session *session)
{
    *(session->older ? &session->older->newer : &sessions->oldest) = session->newer;
    *(session->newer ? &session->newer->older : &sessions->newest) = session->older;
    end_activities(session);
    (void) json_object_put(session->metadata);
    session_request_done(&session->request);
    run_plan_done(&session->plan);
    bytes_done(&session->not_carried);
    free(session);
}

static void forget_old(struct sessions *sessions)
{
    for (struct session *session = sessions->oldest, *next;
         session && sessions->ended > TOMBSTONES_MAX; session = next) {
        next = session->newer;
        if (session->state != SESSION_ENDED || session->listeners)
            continue;
        sessions->ended--;
        forget(sessions, session);
    }
}

/* Sessions are part of the log: who has had one, of what kind, and how it ended. */
static int tell_log(const struct session *session, const char *kind, error *err)
{
    struct receipts *receipts = session->sessions->runs->receipts;
    const struct api_key *key = &session->account->key;
    bool has_ended = session->state == SESSION_ENDED;
    struct event_field fields[SESSION_SUMMARY + 7] = {
        { "end", has_ended ? session_end_name(session->end) : "", 0 },
        { "key", key->id[0] ? key->id : "owner", 0 },
        { "policy", session->plan.policy ? session->plan.policy->digest : "", 0 },
        { "session", session->id, 0 },
        { "template", session->plan.template ? session->plan.template->digest : "", 0 },
        { "tenant", key->tenant, 0 },
    };
    if (has_ended)
        (void) session_summary(session, fields + 6); /* what follows is zero: the end of fields */
    if (receipts && audit_write(receipts, kind, fields, err) < 0)
        return -1;
    if (receipts)
        account_charge_log(session->account, receipts_last_size(receipts));
    return 0;
}

void sessions_ended(struct sessions *sessions, struct session *session)
{
    error err;
    sessions->alive--;
    sessions->ended++;
    if (session->account)
        session->account->sessions--;
    session_tell_deeds(session, true);
    if (session->account && tell_log(session, "session.ended", &err) < 0)
        log_event(LOG_WARNING, "audit.write_failed", TEXT("session", session->id),
                  TEXT("cause", err.text));
    tombstones_note_end(&sessions->tombstones, session);
}

bool session_is_seen(const struct session *session, const struct account *account)
{
    if (!session->account)
        return strcmp(account->owner, session->owner) == 0;
    return account_sees(account, session->account);
}

struct session *sessions_find(const struct sessions *sessions, const struct account *account,
                              const char *id)
{
    for (struct session *session = sessions->newest; session; session = session->older)
        if (strcmp(session->id, id) == 0)
            return session_is_seen(session, account) ? session : NULL;
    return NULL;
}

int sessions_look(const struct sessions *sessions, const struct account *account, const char *id,
                  struct session **ret_session, error *err)
{
    struct session *session = sessions_find(sessions, account, id);
    if (!session)
        return fail(err, ERR_NOT_FOUND, "no session has the id '%.60s'", id);
    *ret_session = session;
    return session->state == SESSION_ENDED
               ? 0
               : account_check_policy(account, session->plan.policy->name, err);
}

int sessions_enter(const struct sessions *sessions, const struct account *account, const char *id,
                   struct session **ret_session, error *err)
{
    struct session *session = NULL;
    if (sessions_look(sessions, account, id, &session, err) < 0)
        return -1;
    assert(session);
    if (session->state == SESSION_ENDED) /* one of an earlier daemon has no policy to ask */
        return fail(err, ERR_CONFLICT, "the session has ended: %s", session->why.text);
    *ret_session = session;
    return 0;
}

/* --- creation -----------------------------------------------------------------------------------
 */

void session_choose_id(char id[SESSION_ID_SIZE])
{
    unsigned char random[16];
    randombytes_buf(random, sizeof random);
    (void) snprintf(id, SESSION_ID_SIZE, "ses_");
    (void) sodium_bin2hex(id + 4, SESSION_ID_SIZE - 4, random, sizeof random);
}

/* What the policy allows; 0: no file states it. */
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

/* A time to live counts from now, and never leads beyond the age that the policy allows. */
static int grant_time(struct session *session, const struct session_request *request, error *err)
{
    uint64_t lived_ms = (uint64_t) (wall_clock_ms() - session->created_ms);
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
    uint64_t max = bound_of(session, SESSIONS_MEMORY);
    uint64_t asked = session->plan.limits.memory;
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

static void list(struct sessions *sessions, struct session *session)
{
    session->older = sessions->newest;
    *(sessions->newest ? &sessions->newest->newer : &sessions->oldest) = session;
    sessions->newest = session;
    sessions->alive++;
    if (session->account)
        session->account->sessions++;
}

/* One key does not take every sandbox of the machine for its sessions. */
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
        output_check_allows_session(session->plan.policy, err) < 0 ||
        check_number(session, err) < 0)
        return -1;
    session->created_ms = wall_clock_ms();
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
    request->id = NULL; /* it is the caller's */
    return 0;
}

static int tell_begin(const struct session *session, error *err)
{
    struct receipts *receipts = session->sessions->runs->receipts;
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
    if (tell_log(session, "session.opened", err) < 0)
        return -1;
    if (!receipts || !session->parent[0])
        return 0;
    if (audit_write(receipts, "session.branched", fields, err) < 0)
        return -1;
    account_charge_log(session->account, receipts_last_size(receipts));
    return 0;
}

static int begin_from(struct session *session, const struct session_source *source, error *err)
{
    for_each_activity(activity, session->sessions) if (source && (*activity)->begin &&
                                                       (*activity)->begin(session, source, err) <
                                                           0) return -1;
    return 0;
}

int session_create(struct sessions *sessions, struct session_request *request,
                   const struct session_source *source, struct session **ret_session, error *err)
{
    forget_old(sessions);
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
        log_event(LOG_DEBUG, "session.refused", TEXT("cause", err->text));
    else if (sessions->runs->is_closing)
        (void) fail(err, ERR_UNAVAILABLE, "gloveboxd is leaving; call again when it is back");
    else if (!sessions->pool->spawner->is_open)
        (void) fail(err, ERR_UNAVAILABLE,
                    "glovebox-spawner is gone and starts again by itself; ask again in a second");
    else if ((!sessions->runs->receipts ||
              receipts_have_room(sessions->runs->receipts, err) == 0) &&
             fill_in(session, &session->request, err) == 0 &&
             begin_from(session, source, err) == 0) {
        list(sessions, session);
        session->start_ends = deadline_in(START_MS);
        if (tell_begin(session, err) == 0 && session_lease(session, err) == 0) {
            log_event(LOG_NOTICE, "session.created", TEXT("session", session->id),
                      TEXT("policy", session->plan.policy->name));
            set_timer(sessions);
            tombstones_note_begin(&sessions->tombstones, session);
            *ret_session = session;
            return 0;
        }
        sessions->alive--;
        session->account->sessions--;
        forget(sessions, session);
        return -1;
    }
    (void) json_object_put(session->metadata);
    session_request_done(&session->request);
    run_plan_done(&session->plan);
    free(session);
    return -1;
}

int session_change(struct session *session, struct session_request *request, error *err)
{
    if (session->state == SESSION_ENDED)
        return fail(err, ERR_CONFLICT, "the session has ended: %s", session->why.text);
    if (session->state == SESSION_PAUSED && (request->has_idle || request->has_ttl))
        return fail(err, ERR_CONFLICT,
                    "the deadlines of a session that is paused stand still; resume it first");
    if (grant_time(session, request, err) < 0)
        return -1;
    if (request->metadata) {
        (void) json_object_put(session->metadata);
        session->metadata = json_object_get(request->metadata);
    }
    session_touch(session);
    set_timer(session->sessions);
    return 0;
}

/* --- opening and closing ------------------------------------------------------------------------
 */

/* What an earlier daemon left. */
static void remember(void *context, const struct tombstone *tombstone)
{
    struct sessions *sessions = context;
    struct session *session = calloc(1, sizeof *session);
    if (!session)
        return;
    session->sessions = sessions;
    session->state = SESSION_ENDED;
    session->end = session_end_of(tombstone->end);
    session->why = tombstone->why;
    session->created_ms = tombstone->created_ms;
    session->ended_ms = tombstone->ended_ms;
    memcpy(session->id, tombstone->id, sizeof session->id);
    memcpy(session->owner, tombstone->owner, sizeof session->owner);
    list(sessions, session);
    sessions->alive--;
    sessions->ended++;
}

/* Those that a killed daemon could not tell the end of. Whose they were stands in their
 * `session.opened`; the list of sessions has no keys. */
static int tell_found_dead(const struct sessions *sessions, int64_t since_ms, error *err)
{
    struct receipts *receipts = sessions->runs->receipts;
    for (const struct session *session = sessions->oldest; session; session = session->newer) {
        const struct event_field fields[] = {
            { "end", session_end_name(session->end), 0 },
            { "key", "", 0 },
            { "policy", "", 0 },
            { "session", session->id, 0 },
            { "template", "", 0 },
            { "tenant", "", 0 },
            { 0 },
        };
        bool is_found_now = session->end == END_DAEMON && session->ended_ms >= since_ms;
        if (receipts && is_found_now && audit_write(receipts, "session.ended", fields, err) < 0)
            return -1;
    }
    return 0;
}

int sessions_open(struct sessions *sessions, const char *state, error *err)
{
    int64_t now = wall_clock_ms();
    if (tombstones_open(state, remember, sessions, &sessions->tombstones, err) < 0 ||
        tell_found_dead(sessions, now, err) < 0)
        return -1;
    sessions->timer.data = sessions;
    (void) uv_timer_init(sessions->loop, &sessions->timer);
    return 0;
}

int sessions_take_over(struct sessions *sessions, error *err)
{
    struct tombstones *tombstones = &sessions->tombstones;
    int64_t now = wall_clock_ms();
    if (tombstones->folder < 0 || tombstones->file >= 0)
        return 0;
    int taken = tombstones_take_over(tombstones, remember, sessions, err);
    if (taken != 0)
        return taken;
    for (const struct session *session = sessions->oldest; session; session = session->newer) {
        if (session->account) /* ours, of the time before */
            tombstones_note_begin(tombstones, session);
        if (session->account && session->state == SESSION_ENDED)
            tombstones_note_end(tombstones, session);
    }
    return tell_found_dead(sessions, now, err);
}

void sessions_leave(struct sessions *sessions)
{
    sessions_end(sessions, END_STOPPED);
    tombstones_close(&sessions->tombstones);
}

void sessions_proceed(struct sessions *sessions)
{
    error why;
    for (struct session *session = sessions->oldest, *next; session; session = next) {
        next = session->newer;
        for_each_activity(activity, sessions) if ((*activity)->use_free_slot &&
                                                  !(*activity)->use_free_slot(session)) return;
        if (session->state != SESSION_STARTING || !session->waits_for_room)
            continue;
        if (session_lease(session, &why) < 0)
            session_end(session, END_FAILED, &why);
        else if (session->waits_for_room)
            return;
    }
}

void sessions_end(struct sessions *sessions, enum session_end end)
{
    error why;
    (void) fail(&why, ERR_UNAVAILABLE, "glovebox was stopped");
    for (struct session *session = sessions->newest, *older; session; session = older) {
        older = session->older;
        session_end(session, end, &why);
    }
}

void sessions_close(struct sessions *sessions)
{
    sessions_end(sessions, END_STOPPED);
    for (struct session *session = sessions->oldest, *next; session; session = next) {
        next = session->newer;
        if (!session->listeners)
            forget(sessions, session);
    }
    tombstones_close(&sessions->tombstones);
    uv_close((uv_handle_t *) &sessions->timer, NULL);
}
