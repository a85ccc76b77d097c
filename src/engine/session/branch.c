/* branch.c - see branch.h. The new session is made from its parent's request; then a context is
 * copied while the sandbox is filled with the copy. */
#include "engine/session/branch.h"

#include "base/cleanup.h"
#include "engine/session/checkpoints.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"
#include "policy/policy_permits.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PIPE_BYTES = 1 << 20, SOCKET_BYTES = 2 << 20 };

struct branching {
    struct session *session; /* the new one */
    struct kept_context kept;
    struct capture *copy; /* of the parent's context, while it is being made */
    bool is_fixed;        /* its content is fixed; the rest is being copied */
    bool is_filled;
    struct restore fill;
    struct stream_copy stream_copy; /* from a checkpoint */
};

/* --- the request ------------------------------------------------------------------------------ */

/* A session does not end while a branch reads it: with one branch after another it would never
 * end. */
static int check_stays(const struct session *session, error *err)
{
    bool is_too_old = session->age_ends.at_ms != 0 && deadline_has_passed(session->age_ends);
    if (session_check_running(session, err) < 0)
        return -1;
    if (session->delete_pending || is_too_old)
        return fail(err, ERR_CONFLICT, "the session is about to end: %s",
                    is_too_old ? "its time to live is over" : "it was deleted");
    if (session->rollback) /* its interpreters are about to end */
        return fail(err, ERR_CONFLICT, "the session is being rolled back; try again in a moment");
    return 0;
}

int branch_choose(struct session *session, const char *name, struct context **ret_context,
                  error *err)
{
    struct context *chosen = NULL;
    if (check_stays(session, err) < 0)
        return -1;
    for (struct context *context = session->contexts; context; context = context->next)
        if (!context->is_removed &&
            (name ? strcmp(context->id, name) == 0
                  : !context->kind->driver && (!chosen || chosen->state == CONTEXT_COLD)))
            chosen = context;
    if (!chosen && (!name || strcmp(name, "python") == 0) &&
        context_find(session, "python", &chosen, err) < 0)
        return -1;
    if (!chosen)
        return fail(err, ERR_NOT_FOUND,
                    "the session has no context '%.40s'; leave it out for that of python", name);
    if (context_warm(chosen, err) < 0 || capture_check(chosen, err) < 0)
        return -1;
    *ret_context = chosen;
    return 0;
}

/* The parent's request, with the overrides. */
static int request_of(const struct session *parent, struct json_object *overrides,
                      struct session_request *ret_request, error *err)
{
    struct json_object *json = NULL;
    if (json_object_deep_copy(parent->request.place->json, &json, NULL) < 0)
        return fail(err, ERR_SYSTEM, "no memory for a session");
    (void) json_object_object_add(json, "policy",
                                  json_object_new_string(parent->plan.policy->name));
    if (parent->metadata)
        (void) json_object_object_add(json, "metadata", json_object_get(parent->metadata));
    (void) json_object_object_add(json, "idle_seconds",
                                  json_object_new_double((double) parent->idle_ms / 1000));
    json_object_object_foreach(overrides, name, value)(void)
        json_object_object_add(json, name, json_object_get(value));
    return session_request_read(json, true, ret_request, err);
}

int session_branch(const struct session_source *source, struct account *asker,
                   struct json_object *overrides, struct session **ret_session, error *err)
{
    struct session_request request, checked;
    if (session_request_read(json_object_get(overrides), false, &checked, err) < 0)
        return -1;
    session_request_done(&checked);
    if (request_of(source->session, overrides, &request, err) < 0)
        return -1;
    request.place->account = asker;
    request.id = source->id;
    return session_create(source->session->sessions, &request, source, ret_session, err);
}

void branch_note_others(const struct session *session, const struct context *chosen,
                        struct bytes *texts)
{
    for (const struct context *context = session->contexts; context; context = context->next)
        if (context != chosen && context->state != CONTEXT_COLD)
            bytes_print(texts, "context %s%c", context->id, 0);
}

/* An image contains addresses of the template's files, so the files must be the same. */
static int check_template(const struct session *session, const char *digest, error *err)
{
    if (strcmp(session->plan.template->digest, digest) == 0)
        return 0;
    return fail(err, ERR_CONFLICT,
                "template %s has been built again since the session began; a branch needs the old "
                "one",
                session->plan.template->name);
}

static int take_source(struct branching *branching, const struct session_source *source, error *err)
{
    struct session *session = branching->session;
    const struct session *parent = source->session;
    struct session_checkpoint *checkpoint = source->checkpoint;
    (void) snprintf(session->parent, sizeof session->parent, "%s", parent->id);
    if (check_template(session, checkpoint ? checkpoint->template : parent->plan.template->digest,
                       err) < 0)
        return -1;
    int kept = checkpoint ? kept_context_copy(&branching->kept, &checkpoint->kept, err)
                          : kept_context_take(&branching->kept, source->context, err);
    if (kept < 0)
        return -1;
    (void) snprintf(session->parent_context, sizeof session->parent_context, "%s",
                    branching->kept.id);
    session->last_context = checkpoint ? checkpoint->last_context : parent->last_context;
    if (checkpoint) {
        (void) snprintf(session->parent_checkpoint, sizeof session->parent_checkpoint, "%s",
                        checkpoint->id);
        bytes_add(&session->not_carried, checkpoint->not_carried.data,
                  checkpoint->not_carried.size);
        branching->stream_copy.checkpoint = checkpoint;
        checkpoint_retain(checkpoint);
    } else {
        branch_note_others(parent, source->context, &session->not_carried);
        if (source->processes > 0)
            bytes_print(&session->not_carried, "%u %s%c", source->processes,
                        source->processes == 1 ? "process" : "processes", 0);
    }
    return 0;
}

static void free_branching(struct session *session);

static int begin(struct session *session, const struct session_source *source, error *err)
{
    struct branching *branching = calloc(1, sizeof *branching);
    if (!branching)
        return fail(err, ERR_SYSTEM, "no memory for a branch");
    branching->session = session;
    session->branching = branching;
    session->sessions->branching++;
    if (take_source(branching, source, err) == 0)
        return 0;
    free_branching(session);
    return -1;
}

/* --- progress --------------------------------------------------------------------------------- */

static void give_up(struct branching *branching, const error *cause)
{
    error why = *cause;
    (void) under(&why, "branch of %s", branching->session->parent);
    session_end(branching->session, END_FAILED, &why);
}

static void note_lost(struct session *session, const struct restore *fill)
{
    if (fill->threads > 0)
        bytes_print(&session->not_carried, "%u %s%c", fill->threads,
                    fill->threads == 1 ? "thread" : "threads", 0);
    if (fill->descriptors > 0)
        bytes_print(&session->not_carried, "%u %s%c", fill->descriptors,
                    fill->descriptors == 1 ? "descriptor that is no file"
                                           : "descriptors that are no files",
                    0);
}

/* The caller is answered; requests that need the branch's memory wait (service_session_wait.h). */
static void set_fixed(struct branching *branching)
{
    struct session *session = branching->session;
    error why;
    branching->is_fixed = true;
    if (context_adopt(session, &branching->kept, FILL_INTERPRETER, &why) < 0)
        give_up(branching, &why);
    else
        session_tell(session);
}

static void stand_if_done(struct branching *branching)
{
    struct session *session = branching->session;
    if (!branching->is_fixed || !branching->is_filled)
        return;
    note_lost(session, &branching->fill);
    free_branching(session);
    pool_wake(session->sessions->pool);
    session_filled(session);
}

void branch_note_files(const struct capture *copy, struct bytes *texts)
{
    unsigned count = capture_left_out(copy);
    if (count > 0)
        bytes_print(texts, "%u %s that cannot be copied%c", count, count == 1 ? "file" : "files",
                    0);
}

/* --- while it is filled ----------------------------------------------------------------------- */

static struct session *parent_of(const struct session *session)
{
    struct session *parent = session->sessions->newest;
    while (parent && strcmp(parent->id, session->parent) != 0)
        parent = parent->older;
    return parent;
}

bool branch_is_fixed(const struct session *session)
{
    return session->branching && session->branching->is_fixed;
}

static bool reads(const struct session *other, const struct session *session)
{
    return other->branching && !other->parent_checkpoint[0] &&
           strcmp(other->parent, session->id) == 0;
}

static unsigned holds(const struct session *session)
{
    unsigned holds = 0;
    for (const struct session *other = session->sessions->newest;
         session->sessions->branching > 0 && other; other = other->older)
        if (reads(other, session))
            holds |= SESSION_IS_COPIED | SESSION_IS_BRANCHED |
                     (branch_is_fixed(other) ? SESSION_MUST_LIVE : 0U);
    return holds;
}

static void on_copied(void *user, const error *why)
{
    struct branching *branching = user;
    branch_note_files(branching->copy, &branching->session->not_carried);
    branching->copy = NULL;
    if (why) {
        give_up(branching, why);
        return;
    }
    struct session *session = branching->session;
    set_fixed(branching);
    if (session->branching == branching)
        stand_if_done(branching);
}

static void on_filled(void *user, const error *why)
{
    struct branching *branching = user;
    branching->is_filled = true;
    if (why)
        give_up(branching, why);
    else
        stand_if_done(branching);
}

int pipe_make(int *ret_read, int *ret_write, error *err)
{
    int pair[2];
    if (pipe2(pair, O_CLOEXEC) < 0)
        return fail_os(err, "make a pipe");
    (void) fcntl(pair[0], F_SETPIPE_SZ, PIPE_BYTES); /* a smaller pipe is only slower */
    *ret_read = pair[0];
    *ret_write = pair[1];
    return 0;
}

/* For files a socket is twice as fast as a pipe: it takes pieces of 32 KiB, a pipe takes pages.
 * Both of its ends are init's. The image is written by the user's own process, which could learn
 * from a socket who made it (SO_PEERPIDFD), or send descriptors: it gets a pipe. */
static int socket_make(int *ret_read, int *ret_write, error *err)
{
    int pair[2], room = SOCKET_BYTES;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
        return fail_os(err, "make a socket for a copy");
    (void) setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &room, sizeof room); /* else: slower */
    (void) shutdown(pair[0], SHUT_WR);
    *ret_read = pair[0];
    *ret_write = pair[1];
    return 0;
}

static int find_parent(const struct session *session, struct context **ret_context, error *err)
{
    struct session *parent = parent_of(session);
    if (!parent || session_check_running(parent, err) < 0)
        return parent ? -1 : fail(err, ERR_CONFLICT, "it has ended");
    for (struct context *context = parent->contexts; context; context = context->next)
        if (!context->is_removed && strcmp(context->id, session->parent_context) == 0) {
            *ret_context = context;
            return 0;
        }
    return fail(err, ERR_CONFLICT, "the context was removed");
}

/* Takes the write ends. */
static int begin_copy(struct branching *branching, const struct capture_pipes *pipes, error *err)
{
    struct capture_pipes unused = *pipes;
    struct session_checkpoint *checkpoint = branching->stream_copy.checkpoint;
    struct capture_order order = { .pipes = *pipes, .told = on_copied, .user = branching };
    if (checkpoint) {
        int poured = stream_copy_begin(&branching->stream_copy, checkpoint, pipes, err);
        checkpoint_release(checkpoint); /* stream_copy retains it */
        return poured;
    }
    if (find_parent(branching->session, &order.context, err) < 0) {
        close_fd(&unused.image);
        close_fd(&unused.files);
        return -1;
    }
    return capture_begin(&order, &branching->copy, err);
}

static bool take_sandbox(struct session *session)
{
    struct branching *branching = session->branching;
    if (!branching)
        return false;
    error why;
    auto_fd image = -1, files = -1;
    struct capture_pipes pipes = { -1, -1 };
    if (pipe_make(&image, &pipes.image, &why) < 0 || socket_make(&files, &pipes.files, &why) < 0) {
        close_fd(&pipes.image);
        give_up(branching, &why);
        return true;
    }
    pool_rest(session->sessions->pool);
    branching->fill.told = on_filled;
    branching->fill.memory = session->plan.limits.memory;
    branching->fill.user = branching;
    branching->fill.is_secret = policy_withholds(session->plan.policy);
    restore_begin(&branching->fill, session->sandbox, take_fd(&image), take_fd(&files));
    if (session->branching != branching) { /* it was ended: its sandbox was lost at once */
        close_fd(&pipes.image);
        close_fd(&pipes.files);
    } else if (begin_copy(branching, &pipes, &why) < 0) {
        give_up(branching, &why);
    } else if (branching->stream_copy.checkpoint) {
        set_fixed(branching); /* fixed when the checkpoint was made */
    }
    return true;
}

static void look(struct session *session)
{
    if (session->state == SESSION_STARTING && session->branching)
        restore_look(&session->branching->fill);
}

static void free_branching(struct session *session)
{
    struct branching *branching = session->branching;
    if (!branching)
        return;
    session->branching = NULL;
    session->sessions->branching--;
    restore_done(&branching->fill);
    stream_copy_done(&branching->stream_copy);
    if (branching->copy)
        capture_abandon(branching->copy);
    kept_context_done(&branching->kept);
    free(branching);
    struct session *parent = parent_of(session);
    if (parent)
        session_tell(parent); /* the branch does not read it any more */
}

static void end(struct session *session, const error *why)
{
    (void) why;
    free_branching(session);
}

const struct session_activity branch_activity = {
    .holds = holds, .begin = begin, .take_sandbox = take_sandbox, .look = look, .end = end
};
