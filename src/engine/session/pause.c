/* pause.c - a paused session. The freezer of control groups stops every program in it. If there is
 * none, init stops them by signals, again and again, since a program can arrange to be continued.
 * The deadlines of the session do not move (decision 0091). */
#include "engine/observe/log.h"
#include "engine/session/branch.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"

#include <signal.h>

enum {
    PAUSE_MAX_MS = 7 * 24 * 60 * 60 * 1000, /* if the policy has no age */
    CPU_MAX_US = 300000,                    /* stopped programs use less */
    FREEZE_MS = 900,                        /* time for the freezer */
};

/* To all processes inside except init. */
static void send_signal(struct session *session, uint32_t number)
{
    struct agent_signal wanted = { .number = number, .whole_group = 1 };
    struct session_operation everything = { .id = 0 };
    session_order(session, &everything, AGENT_SIGNAL, &wanted, sizeof wanted);
}

static int check_rests(const struct session *session, error *err)
{
    if (session_check_running(session, err) < 0)
        return -1;
    if (session_holds(session) & SESSION_ROLLS_BACK)
        return fail(err, ERR_CONFLICT, "the session is being rolled back; try again in a moment");
    if (session_holds(session) & SESSION_IS_COPIED) /* its writer would be stopped, too */
        return fail(err, ERR_CONFLICT,
                    "a checkpoint or a branch of the session is being made; try again in a moment");
    for (const struct context *context = session->contexts; context; context = context->next) {
        if (context->running || context->first_queued)
            return fail(err, ERR_CONFLICT,
                        "a cell runs or waits in context %s; wait for it, or interrupt it",
                        context->id);
        if (context->state == CONTEXT_STARTING || context->is_ending || context->copies)
            return fail(err, ERR_CONFLICT,
                        "context %s starts, ends or is being copied; try again in a moment",
                        context->id);
    }
    return 0;
}

/* Ends the interpreters with all other programs; each context starts a new one when it is used
 * again. */
static void end_programs(struct session *session)
{
    for (struct context *context = session->contexts; context; context = context->next) {
        if (context->state == CONTEXT_COLD)
            continue;
        context->end = "the session was paused with its files only";
        context->end_is_ours = true;
        context_kill(context);
    }
    session->has_parked_interpreter = false;
    send_signal(session, SIGKILL);
}

static void stop(struct session *session)
{
    session->is_stopped = true;
    send_signal(session, SIGSTOP);
}

static bool has_freezer(const struct session *session)
{
    return counters_freezer(sandbox_groups(session->sandbox)) != FREEZER_NONE;
}

const char *session_held_by(const struct session *session)
{
    if (session->state != SESSION_PAUSED || !session->is_held)
        return NULL;
    return session->is_stopped ? "signals" : "freezer";
}

int session_pause(struct session *session, bool files_only, error *err)
{
    if (session->state == SESSION_PAUSED && !files_only)
        return 0;
    if (check_rests(session, err) < 0)
        return -1;
    session->is_stopped = false;
    if (files_only) {
        end_programs(session);
    } else {
        session->is_held = true;
        if (has_freezer(session))
            sandbox_freeze(session->sandbox, true);
        else
            stop(session);
    }
    uint64_t max_ms = session->plan.policy->sessions.values[SESSIONS_AGE];
    session->state = SESSION_PAUSED;
    session->paused_ms = wall_clock_ms();
    session->paused_at = now_ms();
    session->pause_ends = deadline_in(max_ms != 0 ? (int64_t) max_ms : PAUSE_MAX_MS);
    session->cpu_when_paused_us = UINT64_MAX;
    sessions_wake(session->sessions);
    for (const struct session_operation *operation = session->operations, *next; operation;
         operation = next) {
        next = operation->next;
        if (operation->paused)
            operation->paused(operation->context);
    }
    const char *held_by = session_held_by(session);
    log_event(SESSION_PAUSED, TEXT("session", session->id),
              TEXT("kept", files_only ? "files" : "all"), TEXT("by", held_by ? held_by : "end"));
    return 0;
}

/* A session that cannot be paused now, because a cell runs, is tried again a second later. */
void session_look_at_day(struct session *session)
{
    error over, busy;
    if (!session->account ||
        account_check_day(session->sessions->runs->accounts, session->account, &over) == 0 ||
        session_pause(session, false, &busy) < 0)
        return;
    session->is_over_day = true;
    log_event(SESSION_OVER_DAY, TEXT("session", session->id), TEXT("cause", over.text));
}

int session_resume(struct session *session, error *err)
{
    if (session->state == SESSION_RUNNING)
        return 0;
    if (session->state != SESSION_PAUSED)
        return session_check_running(session, err);
    if (session->account &&
        account_check_day(session->sessions->runs->accounts, session->account, err) < 0)
        return -1;
    session->is_over_day = false;
    int64_t paused_ms = now_ms() - session->paused_at;
    session->state = SESSION_RUNNING;
    session->began_at += paused_ms;
    if (session->age_ends.at_ms != 0)
        session->age_ends.at_ms += paused_ms;
    session_touch(session);
    if (session->is_held)
        sandbox_freeze(session->sandbox, false);
    if (session->is_stopped)
        send_signal(session, SIGCONT);
    session->is_held = session->is_stopped = false;
    log_event(SESSION_RESUMED, TEXT("session", session->id));
    for (const struct session_operation *operation = session->operations, *next; operation;
         operation = next) {
        next = operation->next;
        if (operation->resumed)
            operation->resumed(operation->context, paused_ms);
    }
    return 0;
}

/* Called once a second during a pause: stops what is not frozen. A process that forks while it is
 * being frozen, or that waits in the kernel, may need a second call. */
static void hold(struct session *session)
{
    enum freezer freezer = counters_freezer(sandbox_groups(session->sandbox));
    if (freezer == FREEZER_FROZEN || now_ms() - session->paused_at < FREEZE_MS)
        return;
    if (freezer == FREEZER_THAWED)
        sandbox_freeze(session->sandbox, true);
    stop(session);
}

/* Init runs as the user like all other programs, so it is checked that they are stopped. */
void session_look_at_pause(struct session *session)
{
    error why;
    uint64_t used_us = counters_cpu_us(sandbox_groups(session->sandbox));
    if (session->cpu_when_paused_us == UINT64_MAX)
        session->cpu_when_paused_us = used_us;
    if (deadline_has_passed(session->pause_ends)) {
        (void) fail(&why, ERR_CONFLICT, "it was paused for longer than a session may live");
        session_end(session, END_AGE, &why);
    } else if (used_us > session->cpu_when_paused_us + CPU_MAX_US) {
        (void) fail(&why, ERR_PROTOCOL, "it used processor time while it was paused");
        session_end(session, END_LOST, &why);
    } else if (session->is_held) {
        hold(session);
    }
}
