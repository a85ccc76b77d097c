/* session_registry.c - the list of sessions, their number, and their end. */
#include "engine/session/session_internal.h"

#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/session/session_tombstones.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* --- the list --------------------------------------------------------------------------------- */

void sessions_list(struct sessions *sessions, struct session *session)
{
    session->older = sessions->newest;
    *(sessions->newest ? &sessions->newest->newer : &sessions->oldest) = session;
    sessions->newest = session;
    sessions->alive++;
    if (session->account)
        session->account->sessions++;
}

static void end_activities(struct session *session)
{
    error why;
    (void) fail(&why, ERR_CONFLICT, "the session has ended");
    for_each_activity(activity, session->sessions)
        if ((*activity)->end)
            (*activity)->end(session, &why);
}

void session_forget(struct sessions *sessions, struct session *session)
{
    *(session->older ? &session->older->newer : &sessions->oldest) = session->newer;
    *(session->newer ? &session->newer->older : &sessions->newest) = session->older;
    end_activities(session);
    (void) json_object_put(session->metadata);
    session_request_done(&session->request);
    run_plan_done(&session->plan);
    template_release(session->plan.template);
    bytes_done(&session->not_carried);
    free(session);
}

void sessions_forget_old(struct sessions *sessions)
{
    for (struct session *session = sessions->oldest, *next;
         session && sessions->ended > TOMBSTONES_MAX; session = next) {
        next = session->newer;
        if (session->state != SESSION_ENDED || session->listeners)
            continue;
        sessions->ended--;
        session_forget(sessions, session);
    }
}

int session_write_event(const struct session *session, const char *kind,
                        const struct event_field *fields, error *err)
{
    struct receipts *receipts = session->sessions->runs->receipts;
    if (receipts && audit_write(receipts, kind, fields, err) < 0)
        return -1;
    if (receipts)
        account_charge_log(session->account, receipts_last_size(receipts));
    return 0;
}

/* The log has events for sessions: whose they were, their policy, and how they ended. */
int session_write_log(const struct session *session, const char *kind, error *err)
{
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
        (void) session_summary(session, fields + 6); /* the rest is zero: the end of the list */
    return session_write_event(session, kind, fields, err);
}

void sessions_ended(struct sessions *sessions, struct session *session)
{
    error err;
    sessions->alive--;
    sessions->ended++;
    if (session->account)
        session->account->sessions--;
    session_tell_deeds(session, true);
    if (session->account && session_write_log(session, "session.ended", &err) < 0)
        log_event(AUDIT_WRITE_FAILED, TEXT("session", session->id), TEXT("cause", err.text));
    tombstones_note_end(&sessions->tombstones, session);
}

static const struct {
    const char *name, *kept;
} ends[SESSION_ENDS] = {
    /* clang-format off */
    [END_NONE]    = { "",         "" },
    [END_DELETED] = { "deleted",  "nothing: variables, files and processes went with the session" },
    [END_IDLE]    = { "idle",     "nothing: variables, files and processes went with the session" },
    [END_AGE]     = { "expired",  "nothing: variables, files and processes went with the session" },
    [END_LOST]    = { "lost",     "nothing: the sandbox was lost" },
    [END_FAILED]  = { "failed",   "nothing: it never ran" },
    [END_STOPPED] = { "stopped",  "nothing: sessions end with the glovebox that serves them" },
    [END_DAEMON]  = { "daemon",   "nothing: sessions end with the glovebox that serves them" },
    /* clang-format on */
};

const char *session_end_name(enum session_end end)
{
    return ends[end].name;
}

static enum session_end session_end_of(const char *name)
{
    for (enum session_end end = END_DELETED; end < SESSION_ENDS; end++)
        if (strcmp(ends[end].name, name) == 0)
            return end;
    return END_DAEMON;
}

const char *session_end_kept(enum session_end end)
{
    return ends[end].kept;
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
    if (session->state == SESSION_ENDED) /* one of an earlier daemon has no policy */
        return fail(err, ERR_CONFLICT, "the session has ended: %s", session->why.text);
    *ret_session = session;
    return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

/* A session that an earlier daemon left. */
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
    sessions_list(sessions, session);
    sessions->alive--;
    sessions->ended++;
}

/* Writes the end of sessions whose daemon was killed. `session.opened` has their owner; the list of
 * sessions has no keys. */
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
        if (session->account) /* our own, of an earlier call */
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
    if (!sessions->lacks_slot)
        return;
    sessions->lacks_slot = false; /* until one fails to get a slot again */
    for (struct session *session = sessions->oldest, *next; session; session = next) {
        next = session->newer;
        for_each_activity(activity, sessions)
            if ((*activity)->use_free_slot && !(*activity)->use_free_slot(session))
                return;
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
            session_forget(sessions, session);
    }
    tombstones_close(&sessions->tombstones);
    uv_close((uv_handle_t *) &sessions->timer, NULL);
}

/* --- for other folders ------------------------------------------------------------------------ */

enum session_state session_state(const struct session *session)
{
    return session->state;
}

unsigned sessions_count(const struct sessions *sessions, enum session_state state)
{
    unsigned count = 0;
    for (const struct session *session = sessions->oldest; session; session = session->newer)
        count += session->state == state;
    return count;
}

bool session_is_branch(const struct session *session)
{
    return session->parent[0] != '\0';
}

bool session_has_failed(const struct session *session)
{
    return session->state == SESSION_ENDED && session->end == END_FAILED;
}

bool session_is_lost(const struct session *session)
{
    return session_has_failed(session) ||
           (session->state == SESSION_ENDED && session->end == END_LOST);
}

int session_check_alive(const struct session *session, error *err)
{
    if (session->state != SESSION_ENDED)
        return 0;
    *err = session->why;
    return -1;
}

const struct run_spec *session_plan(const struct session *session)
{
    return &session->plan;
}

const struct run_request *session_place(const struct session *session)
{
    return session->request.place;
}

struct json_object *session_metadata(const struct session *session)
{
    return session->metadata;
}

struct session *session_older(const struct session *session)
{
    return session->older;
}

struct runs *session_runs(const struct session *session)
{
    return session->sessions->runs;
}

uint64_t session_cpu_us(const struct session *session)
{
    return session->sandbox ? counters_cpu_us(sandbox_groups(session->sandbox)) : 0;
}

void session_add_facts(const struct session *session, struct receipt_facts *facts)
{
    const struct run_spec *plan = &session->plan;
    facts->session = session->id;
    facts->start = "session";
    facts->policy = (struct fact_named){ plan->policy->name, plan->policy->digest };
    facts->template = (struct fact_named){ plan->template->name, plan->template->digest };
    facts->walls = session->walls;
    facts->degraded = session->degraded;
    facts->granted = plan->limits;
}

void session_count_process(struct session *session)
{
    session->processes++;
}

void session_end_once_read(struct session *session)
{
    session->delete_pending = true;
}
