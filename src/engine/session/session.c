/* session.c - one session, from the lease of its sandbox to its end, and the callbacks in
 * between. */
#include "engine/observe/log.h"

#include "base/list.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"

#include <unistd.h>

/* Operations of sessions are numbered from here: lower numbers are those of the collector. */
enum { FIRST_OPERATION = 32, MOVE_MS = 10000 };

const char *session_id(const struct session *session)
{
    return session->id;
}

const char *session_owner(const struct session *session)
{
    return session->owner;
}

bool session_is_running(const struct session *session)
{
    return session->state == SESSION_RUNNING;
}

/* --- operations ------------------------------------------------------------------------------- */

static struct session_operation *operation_of(const struct session *session, uint32_t id)
{
    for (struct session_operation *operation = session->operations; operation;
         operation = operation->next)
        if (operation->id == id)
            return operation;
    return NULL;
}

static uint32_t fresh_id(struct session *session)
{
    do
        session->last_id = session->last_id < FIRST_OPERATION || session->last_id >= INT32_MAX
                               ? FIRST_OPERATION
                               : session->last_id + 1;
    while (operation_of(session, session->last_id));
    return session->last_id;
}

int session_check_running(const struct session *session, error *err)
{
    if (session->state == SESSION_RUNNING)
        return 0;
    if (session->state == SESSION_PAUSED && session->is_over_day)
        return fail(err, ERR_CONFLICT,
                    "the session is paused: its key has used up its processor time of the day "
                    "(cpu_seconds_per_day); resume it when the next day (UTC) begins");
    if (session->state == SESSION_PAUSED)
        return fail(
            err, ERR_CONFLICT,
            "the session is paused; resume it: glovebox session resume %s, or POST …/resume",
            session->id);
    if (session->state == SESSION_ENDED)
        return fail(err, ERR_CONFLICT, "the session has ended: %s", session->why.text);
    return fail(err, ERR_CONFLICT, "the session has not begun yet; try again in a moment");
}

int session_begin(struct session *session, struct session_operation *operation, error *err)
{
    if (session_check_running(session, err) < 0)
        return -1;
    if (session->operation_count >= SESSION_OPERATIONS_MAX)
        return fail(err, ERR_BUSY, "%u operations are under way in this session; wait for some",
                    session->operation_count);
    if (operation->id == 0)
        operation->id = fresh_id(session);
    session_list(session, operation);
    session_touch(session);
    return 0;
}

void session_list(struct session *session, struct session_operation *operation)
{
    operation->next = session->operations;
    session->operations = operation;
    session->operation_count++;
    session->was_used = true;
}

void session_done(struct session *session, struct session_operation *operation)
{
    if (list_remove(session->operations, operation, next)) {
        operation->next = NULL;
        session->operation_count--;
    }
}

/* The init of a paused session continues its operations. */
static bool has_sandbox(const struct session *session)
{
    return session->state == SESSION_RUNNING || session->state == SESSION_PAUSED;
}

void session_send(struct session *session, const struct session_operation *operation,
                  enum agent_kind kind, const struct iovec *parts, int part_count)
{
    if (has_sandbox(session))
        sandbox_send(session->sandbox,
                     &(struct agent_frame){ .kind = (uint16_t) kind, .id = operation->id }, parts,
                     part_count);
}

void session_send_with(struct session *session, const struct session_operation *operation,
                       enum agent_kind kind, int descriptor)
{
    struct agent_frame frame = { .kind = (uint16_t) kind, .id = operation->id };
    if (has_sandbox(session))
        sandbox_send_with(session->sandbox, &frame, NULL, 0, descriptor);
    else
        (void) close(descriptor);
}

void session_flush(struct session *session)
{
    if (has_sandbox(session))
        sandbox_flush(session->sandbox);
}

bool session_has_room(const struct session *session)
{
    return has_sandbox(session) && sandbox_has_room(session->sandbox);
}

/* Refused calls have no id: every operation that wants them gets them. */
static int hear_denial(const struct session *session, const struct agent_frame *frame,
                       const unsigned char *payload, error *err)
{
    for (const struct session_operation *operation = session->operations; operation;
         operation = operation->next)
        if (operation->hears_denials &&
            operation->frame(operation->context, frame, payload, err) < 0)
            return -1;
    return 0;
}

static int on_frame(void *context, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct session *session = context;
    int result = 0;
    if (frame->kind == AGENT_DENIAL && frame->id == 0) {
        result = hear_denial(session, frame, payload, err);
    } else {
        struct session_operation *operation = operation_of(session, frame->id);
        if (operation)
            result = operation->frame(operation->context, frame, payload, err);
        else if (frame->kind == AGENT_EXITED && frame->id == AGENT_INTERPRETER)
            session->has_parked_interpreter = false; /* it ended before a context took it */
    }
    if (session->state == SESSION_ENDED)
        return 1;
    return result;
}

/* The callback may remove this operation or another one. */
static void on_room(void *context)
{
    const struct session *session = context;
    uint32_t told[SESSION_OPERATIONS_MAX];
    unsigned count = 0;
    for (const struct session_operation *operation = session->operations; operation;
         operation = operation->next)
        if (operation->room)
            told[count++] = operation->id;
    for (unsigned i = 0; i < count && session_has_room(session); i++) {
        const struct session_operation *operation = operation_of(session, told[i]);
        if (operation && operation->room)
            operation->room(operation->context);
    }
}

static void on_broken(void *context, const error *cause)
{
    session_end(context, END_LOST, cause);
}

/* --- use and deadlines ------------------------------------------------------------------------ */

void session_touch(struct session *session)
{
    session->idle_ends = deadline_in((int64_t) session->idle_ms);
    sessions_wake(session->sessions);
}

void session_hold(struct session *session)
{
    session->holds++;
    session_touch(session);
}

void session_let_go(struct session *session)
{
    if (session->holds > 0)
        session->holds--;
    session_touch(session);
}

/* --- listeners -------------------------------------------------------------------------------- */

void session_tell(struct session *session)
{
    for (struct session_listener *listener = session->listeners, *next; listener; listener = next) {
        next = listener->next;
        listener->changed(listener->context, session);
    }
}

void session_listen(struct session *session, struct session_listener *listener)
{
    listener->next = session->listeners;
    session->listeners = listener;
}

void session_unlisten(struct session *session, struct session_listener *listener)
{
    (void) list_remove(session->listeners, listener, next);
}

/* --- life ------------------------------------------------------------------------------------- */

void session_ready(struct session *session)
{
    session->state = SESSION_RUNNING;
    session_touch(session);
    session_tell(session);
}

/* A session is ready when its route is open, like a run. */
void session_open_egress(struct session *session)
{
    error err;
    int opened = session->state == SESSION_STARTING ? session_route_open(session, &err)
                                                    : EGRESS_ROUTE_IS_AWAITED;
    if (opened < 0)
        session_end(session, END_FAILED, &err);
    else if (opened == 0)
        session_ready(session);
}

static void on_route(void *context)
{
    session_open_egress(context);
}

/* From now on events of the sandbox are the session's. */
static void use_sandbox(struct session *session)
{
    struct sandbox_user user = { .context = session,
                                 .frame = on_frame,
                                 .room = on_room,
                                 .route = session_has_egress(session) ? on_route : NULL,
                                 .broken = on_broken };
    sandbox_use(session->sandbox, &user);
    sandbox_rests(session->sandbox); /* opens its counters, which each cell reads twice */
    if (session_has_egress(session))
        session_open_egress(session);
    else
        session_ready(session);
}

void session_filled(struct session *session)
{
    use_sandbox(session);
}

static void on_leased(void *context, struct sandbox *sandbox, enum run_start start,
                      const error *cause)
{
    struct session *session = context;
    session->pending_lease = NULL;
    if (!sandbox) {
        error told = *cause;
        (void) under(&told, "build a sandbox");
        session_end(session, END_FAILED, &told);
        return;
    }
    session->sandbox = sandbox;
    session->start = start;
    session->walls = sandbox_walls(sandbox);
    session->degraded = sandbox_degraded(sandbox);
    session->charged_us = sandbox_cpu_before_us(sandbox);
    session->has_parked_interpreter = session->plan.set >= 0;
    for_each_activity(activity, session->sessions)
        if ((*activity)->take_sandbox && (*activity)->take_sandbox(session))
            return;
    sandbox_send(sandbox, &(struct agent_frame){ .kind = AGENT_KEEP }, NULL, 0);
    use_sandbox(session);
}

struct lease session_lease_of(const struct session *session)
{
    return (struct lease){
        .template = session->plan.template->index,
        .network = run_plan_network(&session->plan),
        .route = run_plan_route(&session->plan),
        .tenant = session->account->tenant,
        .set = session->plan.set,
        .limits = &session->plan.limits,
    };
}

int session_lease(struct session *session, error *err)
{
    struct lease lease = session_lease_of(session);
    lease.told = on_leased;
    lease.context = session;
    struct sandbox *idle = NULL;
    int leased = pool_lease(session->sessions->pool, &lease, &session->pending_lease, &idle, err);
    session->waits_for_room = leased == POOL_FULL;
    session->sessions->lacks_slot |= leased == POOL_FULL;
    if (leased == POOL_FULL)
        return 0;
    if (leased == POOL_LEASED && idle)
        on_leased(session, idle, START_PARKED, NULL);
    return leased;
}

static void end_operations(struct session *session, const error *why)
{
    while (session->operations) {
        struct session_operation *operation = session->operations;
        session->operations = operation->next;
        operation->next = NULL;
        session->operation_count--;
        if (operation->ended)
            operation->ended(operation->context, why);
    }
}

static uint64_t larger(uint64_t one, uint64_t other)
{
    return one > other ? one : other;
}

struct session_usage session_usage(const struct session *session)
{
    const struct counters *now = &session->counters;
    return (struct session_usage){
        .cpu_us = session->before.cpu_us + now->cpu_us,
        .memory_peak_bytes = larger(session->before.memory_peak_bytes, now->memory_peak_bytes),
        .processes_peak = larger(session->before.processes_peak, now->processes_peak),
    };
}

void session_charge(struct session *session)
{
    if (session->sandbox) {
        uint64_t now_us = counters_cpu_us(sandbox_groups(session->sandbox));
        if (now_us > session->counters.cpu_us)
            session->counters.cpu_us = now_us;
    }
    uint64_t used_us = session_usage(session).cpu_us;
    if (!session->account || used_us < session->charged_us + 1000)
        return;
    account_charge_cpu(session->account, (used_us - session->charged_us) / 1000);
    session->charged_us = used_us - (used_us - session->charged_us) % 1000;
}

static void keep_usage(struct session *session)
{
    counters_read(sandbox_groups(session->sandbox), &session->counters);
    session->before = session_usage(session);
    session->counters = (struct counters){ 0 };
}

static void leave_sandbox(struct session *session, const error *why)
{
    for_each_activity(activity, session->sessions)
        if ((*activity)->leave_sandbox)
            (*activity)->leave_sandbox(session, why);
}

void session_move(struct session *session, struct sandbox *sandbox, enum run_start start,
                  const error *cause)
{
    struct sandbox *old = session->sandbox;
    session->state = SESSION_STARTING;
    session->start_ends = deadline_in(MOVE_MS);
    leave_sandbox(session, cause);
    session_route_detach(session);
    end_operations(session, cause);
    keep_usage(session);
    session->holds = 0; /* ended by their callbacks */
    session->injected = NULL;
    session->sandbox = sandbox;
    session->charged_us += sandbox_cpu_before_us(sandbox);
    session->start = start;
    session->walls = sandbox_walls(sandbox);
    session->degraded = sandbox_degraded(sandbox);
    session->has_parked_interpreter = session->plan.set >= 0;
    pool_return(session->sessions->pool, old);
}

void session_end(struct session *session, enum session_end end, const error *why)
{
    if (session->state == SESSION_ENDED)
        return;
    session->state = SESSION_ENDED;
    session->end = end;
    session->why = *why;
    session->ended_ms = wall_clock_ms();
    if (session->sandbox)
        counters_read(sandbox_groups(session->sandbox), &session->counters);
    session_charge(session);
    leave_sandbox(session, why);
    session_route_close(session);
    end_operations(session, why);
    for_each_activity(activity, session->sessions)
        if ((*activity)->end)
            (*activity)->end(session, why);
    if (session->pending_lease)
        pool_abandon(session->pending_lease);
    session->pending_lease = NULL;
    struct sandbox *sandbox = session->sandbox;
    session->sandbox = NULL;
    log_fields(LOGGED_SESSION_ENDED,
               end == END_LOST || end == END_FAILED ? LOG_WARNING : LOG_NOTICE,
               LOG_FIELDS(TEXT("session", session->id), TEXT("end", session_end_name(end)),
                          TEXT("why", why->text)));
    sessions_ended(session->sessions, session);
    session_tell(session);
    if (sandbox)
        pool_return(session->sessions->pool, sandbox);
}

unsigned session_holds(const struct session *session)
{
    unsigned holds = 0;
    for_each_activity(activity, session->sessions)
        if ((*activity)->holds)
            holds |= (*activity)->holds(session);
    return holds;
}
