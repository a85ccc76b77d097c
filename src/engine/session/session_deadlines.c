/* session_deadlines.c - when a session ends by itself: what could not start, its age, its idle
 * time. */
#include "engine/session/session_internal.h"

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
        session_charge(session);
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
    if (session->delete_pending) { /* paused, too: nobody comes back to it */
        (void) fail(&why, ERR_CONFLICT, "it was deleted");
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
                    "it was not used for %llu s; ask for a longer "
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
    sessions_set_timer(sessions);
}

/* Looks at least once a second while there is a session: deadlines move at every use, and nobody
 * has to tell the timer. */
void sessions_set_timer(struct sessions *sessions)
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
