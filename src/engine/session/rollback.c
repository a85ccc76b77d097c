/* rollback.c - see rollback.h. */
#include "engine/session/rollback.h"

#include "base/cleanup.h"
#include "engine/observe/log.h"
#include "engine/session/branch.h"
#include "engine/session/checkpoints.h"
#include "engine/session/session_internal.h"
#include "policy/policy_permits.h"

#include <stdlib.h>

enum { LEASE_MS = 10000 };

struct rollback {
    struct session *session;
    bool waits_for_room;
    struct pool_ticket *pending_lease;
    struct sandbox *sandbox; /* the new one */
    enum run_start start;
    struct restore fill;
    struct stream_copy stream_copy;
    const struct account *asker;
    deadline ends;
    struct session_listener stands; /* after the session has the new sandbox */
    bool has_moved;
    void (*told)(void *user, const error *why);
    void *user;
};

/* Frees all that the session did not take. */
static void finish(struct rollback *rollback, const error *why)
{
    struct session *session = rollback->session;
    void (*told)(void *user, const error *why) = rollback->told;
    void *user = rollback->user;
    session->rollback = NULL;
    session_unlisten(session, &rollback->stands);
    restore_done(&rollback->fill);
    stream_copy_done(&rollback->stream_copy);
    if (rollback->pending_lease)
        pool_abandon(rollback->pending_lease);
    if (rollback->sandbox)
        pool_return(session->sessions->pool, rollback->sandbox);
    free(rollback);
    if (told)
        told(user, why);
}

static void end(struct session *session, const error *why)
{
    if (session->rollback)
        finish(session->rollback, why);
}

void rollback_unsubscribe(struct session *session, const void *user)
{
    if (session->rollback && session->rollback->user == user)
        session->rollback->told = NULL;
}

/* Its route may take a moment to open. */
static void on_changed(void *user, struct session *session)
{
    if (session_is_running(session))
        finish(user, NULL);
}

static void on_filled(void *user, const error *why)
{
    struct rollback *rollback = user;
    struct session *session = rollback->session;
    const struct session_checkpoint *checkpoint = rollback->stream_copy.checkpoint;
    error cause;
    int told = why ? -1
                   : session_checkpoint_tell_log(session, checkpoint, "session.rolled_back",
                                                 rollback->asker, &cause);
    if (told < 0) {
        cause = why ? *why : cause;
        (void) under(&cause, "roll back to checkpoint %s", checkpoint->id);
        finish(rollback, &cause);
        return;
    }
    (void) fail(&cause, ERR_CONFLICT, "the session was rolled back to checkpoint %s",
                checkpoint->name[0] ? checkpoint->name : checkpoint->id);
    log_event(SESSION_ROLLED_BACK, TEXT("session", session->id),
              TEXT("checkpoint", checkpoint->id));
    struct sandbox *sandbox = rollback->sandbox;
    rollback->sandbox = NULL;
    session_move(session, sandbox, rollback->start, &cause);
    int moved = context_adopt(session, &checkpoint->kept, FILL_INTERPRETER, &cause);
    if (moved < 0)
        session_end(session, END_LOST, &cause);
    else
        session_filled(session);
    if (!session->rollback)
        return;
    rollback->has_moved = true;
    rollback->stands = (struct session_listener){ .context = rollback, .changed = on_changed };
    if (moved < 0 || session_is_running(session))
        finish(rollback, moved < 0 ? &cause : NULL);
    else
        session_listen(session, &rollback->stands);
}

static void fill_it(struct rollback *rollback)
{
    error why;
    auto_fd image = -1, files = -1;
    struct capture_pipes pipes = { -1, -1 };
    struct session *session = rollback->session;
    struct session_checkpoint *checkpoint = rollback->stream_copy.checkpoint;
    if (pipe_make(&image, &pipes.image, &why) < 0 || pipe_make(&files, &pipes.files, &why) < 0) {
        close_fd(&pipes.image);
        finish(rollback, &why);
        return;
    }
    rollback->fill.told = on_filled;
    rollback->fill.memory = session->plan.limits.memory;
    rollback->fill.user = rollback;
    rollback->fill.is_secret = policy_withholds(session->plan.policy);
    restore_begin(&rollback->fill, rollback->sandbox, take_fd(&image), take_fd(&files));
    if (session->rollback != rollback) { /* its sandbox was lost at once: it has ended */
        close_fd(&pipes.image);
        close_fd(&pipes.files);
        return;
    }
    int poured = stream_copy_begin(&rollback->stream_copy, checkpoint, &pipes, &why);
    checkpoint_release(checkpoint); /* stream_copy retains it */
    if (poured < 0)
        finish(rollback, &why);
}

static void on_leased(void *context, struct sandbox *sandbox, enum run_start start,
                      const error *cause)
{
    struct rollback *rollback = context;
    rollback->pending_lease = NULL;
    if (!sandbox) {
        error told = *cause;
        (void) under(&told, "build a sandbox");
        finish(rollback, &told);
        return;
    }
    rollback->sandbox = sandbox;
    rollback->start = start;
    fill_it(rollback);
}

/* As pool_lease(). May end the rollback, and then reports it. */
static int lease(struct rollback *rollback, error *err)
{
    struct sandbox *idle = NULL;
    struct session *session = rollback->session;
    struct lease wanted = session_lease_of(session);
    wanted.told = on_leased;
    wanted.context = rollback;
    int leased = pool_lease(session->sessions->pool, &wanted, &rollback->pending_lease, &idle, err);
    rollback->waits_for_room = leased == POOL_FULL;
    session->sessions->lacks_slot |= leased == POOL_FULL;
    if (leased == POOL_LEASED && idle)
        on_leased(rollback, idle, START_PARKED, NULL);
    return leased;
}

static bool use_free_slot(struct session *session)
{
    struct rollback *rollback = session->rollback;
    error why;
    if (!rollback || !rollback->waits_for_room)
        return true;
    int leased = lease(rollback, &why);
    if (leased < 0)
        finish(rollback, &why);
    return leased != POOL_FULL;
}

int session_roll_back(struct session *session, const struct rollback_order *order, error *err)
{
    if (session_check_running(session, err) < 0)
        return -1;
    if (session->rollback)
        return fail(err, ERR_CONFLICT, "the session is being rolled back already");
    if (session_holds(session) &
        SESSION_IS_BRANCHED) /* the branch may have been answered, and would lose its source */
        return fail(err, ERR_CONFLICT,
                    "a branch of the session is being made; try again in a moment");
    struct rollback *rollback = calloc(1, sizeof *rollback);
    if (!rollback)
        return fail(err, ERR_SYSTEM, "no memory for the rollback");
    *rollback = (struct rollback){ .session = session,
                                   .stream_copy = { .checkpoint = order->checkpoint },
                                   .asker = order->asker,
                                   .ends = deadline_in(LEASE_MS),
                                   .told = order->told,
                                   .user = order->user };
    checkpoint_retain(order->checkpoint);
    session->rollback = rollback;
    session_touch(session);
    if (lease(rollback, err) >= 0)
        return 0;
    rollback->told = NULL;
    finish(rollback, err);
    return -1;
}

static void look(struct session *session)
{
    struct rollback *rollback = session->rollback;
    error why;
    if (!rollback || rollback->has_moved)
        return;
    if (rollback->sandbox) {
        restore_look(&rollback->fill);
    } else if (deadline_has_passed(rollback->ends)) {
        (void) (rollback->waits_for_room
                    ? fail(&why, ERR_BUSY,
                           "every sandbox slot of this machine, which all its services of "
                           "glovebox share, is taken, and none became free in "
                           "%d s for the rollback; try again later, or end a session",
                           LEASE_MS / 1000)
                    : fail(&why, ERR_TIMEOUT, "no sandbox was built in %d s", LEASE_MS / 1000));
        finish(rollback, &why);
    }
}

static unsigned holds(const struct session *session)
{
    return session->rollback ? SESSION_ROLLS_BACK : 0U;
}

const struct session_activity rollback_activity = {
    .holds = holds, .look = look, .use_free_slot = use_free_slot, .end = end
};
