/* checkpoints.c - see checkpoints.h. */
#include "engine/session/checkpoints.h"

#include "base/cleanup.h"
#include "base/list.h"
#include "base/text.h"
#include "engine/observe/log.h"
#include "engine/session/session_internal.h"
#include "engine/store/blobs.h"
#include "json/writer.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* --- the end ---------------------------------------------------------------------------------- */

static void close_files(void *user)
{
    const struct session_checkpoint *checkpoint = user;
    close_fd(&checkpoint->image.file);
    close_fd(&checkpoint->files.file);
}

static void on_closed(void *user)
{
    struct session_checkpoint *checkpoint = user;
    checkpoint->account->session_checkpoint_bytes -= checkpoint->unreturned;
    checkpoint->sessions->session_checkpoint_bytes -= checkpoint->unreturned;
    free(checkpoint);
}

/* Freeing the pages of its files takes time, so a disk thread does it. */
static void forget(struct session_checkpoint *checkpoint)
{
    kept_context_done(&checkpoint->kept);
    bytes_done(&checkpoint->not_carried);
    checkpoint->closing = (struct disk_job){ close_files, on_closed, checkpoint, NULL };
    disk_worker_do(checkpoint->loop, &checkpoint->closing);
}

void checkpoint_retain(struct session_checkpoint *checkpoint)
{
    checkpoint->holds++;
}

void checkpoint_release(struct session_checkpoint *checkpoint)
{
    if (--checkpoint->holds == 0 && !checkpoint->session)
        forget(checkpoint);
}

/* Removes it from the session; restores that retain it may still read it. */
static void leave_session(struct session_checkpoint *checkpoint)
{
    struct session *session = checkpoint->session;
    (void) list_remove(session->checkpoints, checkpoint, older);
    session->session_checkpoint_count--;
    session->account->session_checkpoint_count--;
    session->sessions->session_checkpoint_count--;
    checkpoint->account = session->account;
    checkpoint->sessions = session->sessions;
    checkpoint->unreturned = session_checkpoint_bytes(checkpoint);
    if (checkpoint->is_ready) { /* its bytes are free for the next request at once */
        checkpoint->account->session_checkpoint_bytes -= checkpoint->unreturned;
        checkpoint->sessions->session_checkpoint_bytes -= checkpoint->unreturned;
        checkpoint->unreturned = 0;
    }
    if (checkpoint->copy)
        capture_abandon(checkpoint->copy);
    spool_abandon(checkpoint->image.spool);
    spool_abandon(checkpoint->files.spool);
    checkpoint->copy = NULL;
    checkpoint->image.spool = checkpoint->files.spool = NULL;
    checkpoint->session = NULL;
    checkpoint->told = NULL;
}

void session_checkpoint_remove(struct session_checkpoint *checkpoint)
{
    leave_session(checkpoint);
    if (checkpoint->holds == 0)
        forget(checkpoint);
}

static void break_off(struct session_checkpoint *checkpoint, const error *cause)
{
    error why = *cause;
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why) =
        checkpoint->told;
    void *user = checkpoint->user;
    (void) under(&why, "checkpoint");
    checkpoint_retain(checkpoint);
    leave_session(checkpoint);
    if (told)
        told(user, checkpoint, &why);
    checkpoint_release(checkpoint);
}

static void look(struct session *session)
{
    error why;
    for (struct session_checkpoint *checkpoint = session->checkpoints, *older; checkpoint;
         checkpoint = older) {
        older = checkpoint->older;
        if (checkpoint->is_ready || !deadline_has_passed(checkpoint->ends))
            continue;
        (void) fail(&why, ERR_TIMEOUT, "it was not written in %d s", CHECKPOINT_MS / 1000);
        break_off(checkpoint, &why);
        return; /* the list may have changed */
    }
}

static void end(struct session *session, const error *why)
{
    for (struct session_checkpoint *checkpoint = session->checkpoints; checkpoint;
         checkpoint = session->checkpoints) {
        session->checkpoints = checkpoint->older; /* the list must not have freed ones */
        break_off(checkpoint, why);
    }
}

/* --- make one --------------------------------------------------------------------------------- */

static int64_t bytes_shown(const struct session_checkpoint *checkpoint)
{
    return checkpoint->is_withheld ? 0 : (int64_t) session_checkpoint_bytes(checkpoint);
}

int session_checkpoint_tell_log(const struct session *session,
                                const struct session_checkpoint *checkpoint, const char *kind,
                                const struct account *asker, error *err)
{
    const struct event_field fields[] = {
        { "bytes", NULL, bytes_shown(checkpoint) },
        { "context", checkpoint->kept.id, 0 },
        { "key", asker->key.id[0] ? asker->key.id : "owner", 0 },
        { "checkpoint", checkpoint->id, 0 },
        { "session", session->id, 0 },
        { "tenant", asker->key.tenant, 0 },
        { 0 },
    };
    return session_write_event(session, kind, fields, err);
}

static void be_ready_if_done(struct session_checkpoint *checkpoint)
{
    error why;
    if (!checkpoint->is_copied || !checkpoint->image.is_whole || !checkpoint->files.is_whole)
        return;
    if (!session_checkpoint_image_is_whole(checkpoint)) {
        (void) fail(&why, ERR_CONFLICT,
                    "the interpreter cannot be copied: its image ended early; was it killed, or "
                    "its memory used up?");
        break_off(checkpoint, &why);
        return;
    }
    if (session_checkpoint_tell_log(checkpoint->session, checkpoint, "session.checkpointed",
                                    checkpoint->maker, &why) < 0) {
        break_off(checkpoint, &why);
        return;
    }
    checkpoint->is_ready = true;
    log_event(SESSION_CHECKPOINTED, TEXT("session", checkpoint->session->id),
              TEXT("checkpoint", checkpoint->id),
              COUNT("bytes", session_checkpoint_bytes(checkpoint)));
    void (*told)(void *user, struct session_checkpoint *checkpoint, const error *why) =
        checkpoint->told;
    checkpoint->told = NULL;
    if (told)
        told(checkpoint->user, checkpoint, NULL);
}

static void on_copied(void *user, const error *why)
{
    struct session_checkpoint *checkpoint = user;
    branch_note_files(checkpoint->copy, &checkpoint->not_carried);
    checkpoint->copy = NULL;
    checkpoint->is_copied = true;
    if (why)
        break_off(checkpoint, why);
    else
        be_ready_if_done(checkpoint);
}

static void on_pumped(void *user, uint64_t moved, const error *why)
{
    struct session_checkpoint_part *part = user;
    struct session_checkpoint *checkpoint = part->checkpoint;
    (void) moved;
    part->spool = NULL;
    part->is_whole = true;
    if (why) {
        break_off(checkpoint, why);
        return;
    }
    be_ready_if_done(checkpoint);
}

/* Makes the pipe whose write end the copy gets, also if it fails later. */
static int open_part(struct session_checkpoint *checkpoint, struct session_checkpoint_part *part,
                     int *ret_pipe, error *err)
{
    struct session *session = checkpoint->session;
    struct sessions *sessions = session->sessions;
    struct spool_order order = { .loop = sessions->loop,
                                 .max = session->plan.limits.memory + session->plan.limits.disk +
                                        CHECKPOINT_OURS,
                                 .grows = session_checkpoint_grows,
                                 .told = on_pumped,
                                 .user = part };
    part->checkpoint = checkpoint;
    part->file = blobs_scratch(sessions->runs->blobs, err);
    if (part->file < 0 || pipe_make(&order.pipe, ret_pipe, err) < 0)
        return -1;
    order.file = part->file;
    return spool_out(&order, &part->spool, err);
}

static struct session_checkpoint *
session_checkpoint_new(struct session *session, const struct session_checkpoint_order *order,
                       error *err)
{
    unsigned char random[16];
    struct session_checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    if (!checkpoint || kept_context_take(&checkpoint->kept, order->context, err) < 0) {
        (void) fail(err, ERR_SYSTEM, "no memory for a checkpoint");
        free(checkpoint);
        return NULL;
    }
    randombytes_buf(random, sizeof random);
    (void) snprintf(checkpoint->id, sizeof checkpoint->id, "ckp_");
    (void) sodium_bin2hex(checkpoint->id + 4, sizeof checkpoint->id - 4, random, sizeof random);
    (void) snprintf(checkpoint->name, sizeof checkpoint->name, "%s", order->name);
    (void) snprintf(checkpoint->template, sizeof checkpoint->template, "%s",
                    session->plan.template->digest);
    checkpoint->session = session;
    checkpoint->loop = session->sessions->loop;
    checkpoint->maker = order->asker;
    checkpoint->is_withheld = session_usage_is_withheld(session);
    checkpoint->image.file = checkpoint->files.file = -1;
    checkpoint->created_ms = wall_clock_ms();
    checkpoint->last_context = session->last_context;
    checkpoint->ends = deadline_in(CHECKPOINT_MS);
    checkpoint->older = session->checkpoints;
    session->checkpoints = checkpoint;
    session->session_checkpoint_count++;
    session->account->session_checkpoint_count++;
    session->sessions->session_checkpoint_count++;
    branch_note_others(session, order->context, &checkpoint->not_carried);
    return checkpoint;
}

int session_checkpoint_make(struct session *session, const struct session_checkpoint_order *order,
                            struct session_checkpoint **ret_checkpoint, error *err)
{
    struct capture_order copied = { .context = order->context,
                                    .pipes = { -1, -1 },
                                    .told = on_copied };
    if (account_check_log(session->sessions->runs->accounts, session->account, err) < 0 ||
        session_checkpoint_check_room(session, order->name, err) < 0)
        return -1;
    struct session_checkpoint *checkpoint = session_checkpoint_new(session, order, err);
    if (!checkpoint)
        return -1;
    int result = open_part(checkpoint, &checkpoint->image, &copied.pipes.image, err);
    if (result == 0)
        result = open_part(checkpoint, &checkpoint->files, &copied.pipes.files, err);
    if (result < 0) {
        close_fd(&copied.pipes.image);
        close_fd(&copied.pipes.files);
        session_checkpoint_remove(checkpoint);
        return -1;
    }
    checkpoint->told = order->told;
    checkpoint->user = order->user;
    checkpoint_retain(checkpoint); /* the copy may fail at once, with a callback */
    copied.user = checkpoint;
    result = capture_begin(&copied, &checkpoint->copy, err);
    if (result < 0 && checkpoint->session)
        leave_session(checkpoint);
    *ret_checkpoint = checkpoint->session ? checkpoint : NULL;
    checkpoint_release(checkpoint);
    return result;
}

/* --- find one --------------------------------------------------------------------------------- */

static int no_such_mark(const struct session *session, const char *name, error *err)
{
    char names[110] = "";                /* the newest */
    if (session->state == SESSION_ENDED) /* its checkpoints were removed with it */
        return session_check_running(session, err);
    for (const struct session_checkpoint *checkpoint = session->checkpoints; checkpoint;
         checkpoint = checkpoint->older)
        if (!text_list(names, sizeof names,
                       checkpoint->name[0] ? checkpoint->name : checkpoint->id))
            break;
    return fail(err, ERR_NOT_FOUND, "the session has no checkpoint '%.60s'; it has %s", name,
                *names ? names : "none");
}

int session_checkpoint_find(const struct session *session, const char *name,
                            struct session_checkpoint **ret_checkpoint, error *err)
{
    struct session_checkpoint *checkpoint = session->checkpoints;
    while (checkpoint && strcmp(checkpoint->id, name) != 0 &&
           (!name[0] || strcmp(checkpoint->name, name) != 0))
        checkpoint = checkpoint->older;
    if (!checkpoint)
        return no_such_mark(session, name, err);
    if (!checkpoint->is_ready)
        return fail(err, ERR_CONFLICT, "checkpoint '%.60s' is being made; try again in a moment",
                    name);
    *ret_checkpoint = checkpoint;
    return 0;
}

void session_checkpoint_write(const struct session_checkpoint *checkpoint, struct bytes *out)
{
    static const struct bytes nothing;
    json_open(out, '{');
    json_string_field(out, "id", checkpoint->id);
    json_string_field(out, "name", checkpoint->name[0] ? checkpoint->name : NULL);
    json_string_field(out, "session", checkpoint->session ? checkpoint->session->id : NULL);
    json_string_field(out, "context", checkpoint->kept.id);
    json_moment_field(out, "created_at", checkpoint->created_ms);
    json_count_field(out, "bytes", (uint64_t) bytes_shown(checkpoint));
    json_key(out, "not_carried");
    json_texts(out, checkpoint->is_withheld ? &nothing : &checkpoint->not_carried);
    json_close(out, '}');
}

void checkpoints_write(const struct session *session, struct bytes *out)
{
    json_open(out, '[');
    for (const struct session_checkpoint *checkpoint = session->checkpoints; checkpoint;
         checkpoint = checkpoint->older)
        if (checkpoint->is_ready)
            session_checkpoint_write(checkpoint, out);
    json_close(out, ']');
}

static unsigned holds(const struct session *session)
{
    for (const struct session_checkpoint *checkpoint = session->checkpoints; checkpoint;
         checkpoint = checkpoint->older)
        if (!checkpoint->is_ready)
            return SESSION_IS_COPIED;
    return 0;
}

const struct session_activity checkpoint_activity = { .holds = holds, .look = look, .end = end };
