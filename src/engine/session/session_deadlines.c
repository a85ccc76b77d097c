/* session_deadlines.c - ends sessions at their deadlines: start, age, idle time. */
#include "engine/session/session_internal.h"

enum { REST_MS = 5000, CHARGE_MS = 10000, CHARGE_IDLE_MS = 80000 };

static bool has_day(const struct session *session)
{
    return session->account && account_has_day(session->sessions->runs->accounts, session->account);
}

/* Until the next of its deadlines, at most REST_MS. */
static int64_t left_ms(const struct session *session, int64_t now)
{
    int64_t left = REST_MS, age = session->age_ends.at_ms, idle = session->idle_ends.at_ms;
    if (session->state != SESSION_RUNNING)
        return left;
    left = age != 0 && age - now < left ? age - now : left;
    left = session->holds == 0 && idle != 0 && idle - now < left ? idle - now : left;
    if (left < SESSION_LOOK_MS && (session_holds(session) & SESSION_MUST_LIVE))
        return SESSION_LOOK_MS; /* while a branch is made */
    return left > 0 ? left : 0;
}

/* Not used since the last look, and only its own end is due: such a session is checked every fifth
 * second. There may be a thousand of them. */
static bool is_unused(struct session *session, int64_t left)
{
    bool is_touched = session->idle_ends.at_ms != session->looked_at_ms;
    session->looked_at_ms = session->idle_ends.at_ms;
    return !is_touched && session->state == SESSION_RUNNING && session->holds == 0 &&
           !session->delete_pending && !session->rollback && !session->checkpoints &&
           !session->injected && session->sessions->branching == 0 && left > 0 &&
           session->idle_ends.at_ms != 0 && !has_day(session);
}

/* Charges processor time between cells, which means reading a counter of the kernel. If the key has
 * a daily bound, its sessions are paused within a second of reaching it. Else the time is only a
 * figure of /metrics: a session that uses none is read less and less often, and not at all before
 * any code of its client has run. */
static void look_at_charge(struct session *session)
{
    if (!session->was_used || (!has_day(session) && !deadline_has_passed(session->charge_due)))
        return;
    uint64_t before_us = session->charged_us;
    session_charge(session);
    bool is_idle = session->charged_us == before_us && session->charge_ms >= CHARGE_MS;
    session->charge_ms = !is_idle                              ? CHARGE_MS
                         : session->charge_ms < CHARGE_IDLE_MS ? 2 * session->charge_ms
                                                               : CHARGE_IDLE_MS;
    session->charge_due = deadline_in(session->charge_ms);
}

static void look_at_deadlines(struct session *session)
{
    error why;
    bool is_filled = session->branching && session->sandbox; /* a branch has its own deadlines */
    if (session->state == SESSION_STARTING && !is_filled &&
        deadline_has_passed(session->start_ends)) {
        if (session->sandbox)
            (void) fail(&why, ERR_TIMEOUT, "its egress was not opened in time");
        else if (!session->waits_for_room)
            (void) fail(&why, ERR_BUSY,
                        "its sandbox was not built in %d s: the machine is busy, %u of %u sandbox "
                        "slots are taken; try again later",
                        SESSION_START_MS / 1000, session->sessions->pool->in_use,
                        session->sessions->pool->slots);
        else
            (void) fail(&why, ERR_BUSY,
                        "every sandbox slot of this machine, which all its services of "
                        "glovebox share, is taken, and none became free in %d s; "
                        "try again later, or end a session",
                        SESSION_START_MS / 1000);
        session_end(session, END_FAILED, &why);
    }
    if (session->state != SESSION_ENDED)
        look_at_charge(session);
    if (session->state == SESSION_PAUSED)
        session_look_at_pause(session);
    if (session->state == SESSION_RUNNING)
        session_look_at_day(session);
    for_each_activity(activity, session->sessions)
        (*activity)->look(session);
    if (session->state != SESSION_ENDED)
        session_tell_deeds(session, false);
    unsigned holds = session_holds(session);
    if (session->state == SESSION_ENDED || (holds & SESSION_MUST_LIVE))
        return;
    if (session->delete_pending) { /* also if it is paused */
        (void) fail(&why, ERR_CONFLICT, "it was deleted");
        session_end(session, END_DELETED, &why);
    } else if (session->state != SESSION_RUNNING) {
        return;
    } else if (session->age_ends.at_ms != 0 && deadline_has_passed(session->age_ends)) {
        (void) fail(&why, ERR_CONFLICT,
                    "its time to live is over; ask for a longer ttl_seconds, or extend it with "
                    "PATCH while it lives");
        session_end(session, END_AGE, &why);
    } else if (session->holds == 0 && session->idle_ends.at_ms != 0 &&
               deadline_has_passed(session->idle_ends)) {
        if (holds & (SESSION_ROLLS_BACK | SESSION_IS_COPIED)) { /* a request waits for its end */
            session_touch(session);
            return;
        }
        (void) fail(&why, ERR_CONFLICT,
                    "it was not used for %llu s; ask for a longer "
                    "idle_seconds, or touch it with PATCH",
                    (unsigned long long) (session->idle_ms / 1000));
        session_end(session, END_IDLE, &why);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct sessions *sessions = timer->data;
    int64_t now = now_ms();
    bool looks_at_all = now >= sessions->look_at_all.at_ms;
    if (looks_at_all)
        sessions->look_at_all.at_ms = now + REST_MS;
    int64_t next = sessions->look_at_all.at_ms - now;
    for (struct session *session = sessions->newest, *older; session; session = older) {
        older = session->older;
        if (session->state == SESSION_ENDED)
            continue;
        int64_t left = left_ms(session, now); /* session_end() below may free it */
        bool rests = is_unused(session, left);
        int64_t its = rests || left < SESSION_LOOK_MS ? left : SESSION_LOOK_MS;
        next = its < next ? its : next;
        if (looks_at_all || !rests)
            look_at_deadlines(session);
    }
    sessions->are_unused = next > SESSION_LOOK_MS;
    (void) (sessions->alive > 0 ? uv_timer_start(timer, on_timer, (uint64_t) next, SESSION_LOOK_MS)
                                : uv_timer_stop(timer));
}

/* Sets the timer without checking all sessions, so that using one is cheap. */
void sessions_look_in_time(const struct session *session)
{
    uv_timer_t *timer = &session->sessions->timer;
    int64_t left = left_ms(session, now_ms());
    uint64_t due = (uint64_t) (left < SESSION_LOOK_MS ? left : SESSION_LOOK_MS);
    if (!uv_is_active((const uv_handle_t *) timer) || uv_timer_get_due_in(timer) > due)
        (void) uv_timer_start(timer, on_timer, due, SESSION_LOOK_MS);
}
