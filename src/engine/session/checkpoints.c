/* checkpoints.c - see checkpoints.h. */
#include "engine/session/checkpoints.h"

#include "base/cleanup.h"
#include "contract/image.h"
#include "engine/audit/audit_log.h"
#include "engine/observe/log.h"
#include "engine/session/contexts.h"
#include "engine/session/session_registry.h"
#include "engine/store/blobs.h"
#include "engine/store/disk_worker.h"
#include "json/writer.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint64_t mark_bytes(const struct mark *mark)
{
    return mark->image.bytes + mark->files.bytes;
}

/* --- the end ------------------------------------------------------------------------------------
 */

static void forget(struct mark *mark)
{
    kept_context_done(&mark->kept);
    bytes_done(&mark->not_carried);
    beside_close(mark->loop, mark->image.file);
    beside_close(mark->loop, mark->files.file);
    free(mark);
}

void mark_hold(struct mark *mark)
{
    mark->holds++;
}

void mark_let_go(struct mark *mark)
{
    if (--mark->holds == 0 && !mark->session)
        forget(mark);
}

/* It is no mark of the session any more; who holds it may still read from it. */
static void leave_session(struct mark *mark)
{
    struct session *session = mark->session;
    for (struct mark **at = &session->marks; *at; at = &(*at)->older)
        if (*at == mark) {
            *at = mark->older;
            break;
        }
    session->mark_count--;
    session->account->mark_count--;
    session->account->mark_bytes -= mark_bytes(mark);
    session->sessions->mark_count--;
    session->sessions->mark_bytes -= mark_bytes(mark);
    if (mark->copy)
        copy_abandon(mark->copy);
    pump_abandon(mark->image.pump);
    pump_abandon(mark->files.pump);
    mark->copy = NULL;
    mark->image.pump = mark->files.pump = NULL;
    mark->session = NULL;
    mark->told = NULL;
}

void mark_remove(struct mark *mark)
{
    leave_session(mark);
    if (mark->holds == 0)
        forget(mark);
}

static void break_off(struct mark *mark, const error *cause)
{
    error why = *cause;
    void (*told)(void *user, struct mark *mark, const error *why) = mark->told;
    void *user = mark->user;
    (void) under(&why, "mark");
    mark_hold(mark);
    leave_session(mark);
    if (told)
        told(user, mark, &why);
    mark_let_go(mark);
}

void marks_look(struct session *session)
{
    error why;
    for (struct mark *mark = session->marks, *older; mark; mark = older) {
        older = mark->older;
        if (mark->is_ready || !deadline_has_passed(mark->ends))
            continue;
        (void) fail(&why, ERR_TIMEOUT, "it was not written in %d s", MARK_MS / 1000);
        break_off(mark, &why);
        return; /* the list may be another now */
    }
}

void marks_end(struct session *session, const error *why)
{
    for (struct mark *mark = session->marks; mark; mark = session->marks) {
        session->marks = mark->older; /* the list is not asked of what is freed */
        break_off(mark, why);
    }
}

/* --- the making ---------------------------------------------------------------------------------
 */

int mark_tell_log(const struct session *session, const struct mark *mark, const char *kind,
                  const struct account *asker, error *err)
{
    struct receipts *receipts = session->sessions->runs->receipts;
    const struct event_field fields[] = {
        { "bytes", NULL, (int64_t) mark_bytes(mark) },
        { "context", mark->kept.id, 0 },
        { "key", asker->key.id[0] ? asker->key.id : "owner", 0 },
        { "mark", mark->id, 0 },
        { "session", session->id, 0 },
        { "tenant", asker->key.tenant, 0 },
        { 0 },
    };
    if (receipts && audit_write(receipts, kind, fields, err) < 0)
        return -1;
    if (receipts)
        account_charge_log(session->account, receipts_last_size(receipts));
    return 0;
}

/* Whoever wrote it may have been killed on the way. */
static bool image_came_whole(const struct mark_part *part)
{
    struct image_head head;
    struct image_end end;
    return part->bytes >= sizeof head + sizeof end &&
           pread(part->file, &head, sizeof head, 0) == sizeof head &&
           pread(part->file, &end, sizeof end, (off_t) (part->bytes - sizeof end)) == sizeof end &&
           image_is_whole(&head, &end, part->bytes);
}

static void be_ready_if_done(struct mark *mark)
{
    error why;
    if (!mark->is_copied || !mark->image.is_whole || !mark->files.is_whole)
        return;
    if (!image_came_whole(&mark->image)) {
        (void) fail(&why, ERR_CONFLICT,
                    "the interpreter cannot be copied: its image ended early; was it killed, or "
                    "its memory used up?");
        break_off(mark, &why);
        return;
    }
    if (mark_tell_log(mark->session, mark, "session.marked", mark->maker, &why) < 0) {
        break_off(mark, &why);
        return;
    }
    mark->is_ready = true;
    log_event(LOG_NOTICE, "session.marked", TEXT("session", mark->session->id),
              TEXT("mark", mark->id), COUNT("bytes", mark_bytes(mark)));
    void (*told)(void *user, struct mark *mark, const error *why) = mark->told;
    mark->told = NULL;
    if (told)
        told(mark->user, mark, NULL);
}

static void on_copied(void *user, const error *why)
{
    struct mark *mark = user;
    branching_note_files(mark->copy, &mark->not_carried);
    mark->copy = NULL;
    mark->is_copied = true;
    if (why)
        break_off(mark, why);
    else
        be_ready_if_done(mark);
}

/* One key leaves half to the others; the owner of the daemon has what all may have. */
static uint64_t share_of(const struct account *account, uint64_t most)
{
    return account->key.id[0] ? most / 2 : most;
}

static bool has_room(uint64_t taken, uint64_t more, uint64_t most)
{
    return taken <= most && more <= most - taken;
}

static uint64_t bytes_of_all(const struct session *session)
{
    uint64_t bytes = 0;
    for (const struct mark *mark = session->marks; mark; mark = mark->older)
        bytes += mark_bytes(mark);
    return bytes;
}

/* Counted as it comes: marks that are never finished have no more of the disk than others. */
static int on_growth(void *user, uint64_t bytes, error *err)
{
    struct mark_part *part = user;
    struct account *account = part->mark->session->account;
    struct sessions *sessions = part->mark->session->sessions;
    uint64_t most = sessions->mark_bytes_most;
    const struct policy *policy = part->mark->session->spec.policy;
    uint64_t of_session = 0;
    if (policy_bounds_sessions(policy, SESSIONS_MARKS_SIZE, &of_session) &&
        bytes_of_all(part->mark->session) + bytes > of_session)
        return fail(err, ERR_LIMIT,
                    "policy %s gives the marks of a session %llu MiB (sessions.marks_size); remove "
                    "some, or keep less in the session",
                    policy->name, (unsigned long long) (of_session >> 20));
    uint64_t share = share_of(account, most);
    if (!has_room(sessions->mark_bytes, bytes, most))
        return fail(err, ERR_BUSY,
                    "marks of all sessions may have %llu MiB (setting marks_mib); remove some",
                    (unsigned long long) (most >> 20));
    if (!has_room(account->mark_bytes, bytes, share))
        return fail(err, ERR_BUSY,
                    "marks of one key may have %llu MiB (half of setting marks_mib); remove some",
                    (unsigned long long) (share >> 20));
    part->bytes += bytes;
    account->mark_bytes += bytes;
    sessions->mark_bytes += bytes;
    return 0;
}

static void on_pumped(void *user, uint64_t moved, const error *why)
{
    struct mark_part *part = user;
    struct mark *mark = part->mark;
    (void) moved;
    part->pump = NULL;
    part->is_whole = true;
    if (why) {
        break_off(mark, why);
        return;
    }
    be_ready_if_done(mark);
}

/* The pipe's write end goes into the copy. It may be there also when it fails. */
static int open_part(struct mark *mark, struct mark_part *part, int *ret_pipe, error *err)
{
    struct session *session = mark->session;
    struct sessions *sessions = session->sessions;
    struct pump_order order = { .loop = sessions->loop,
                                .most = session->spec.limits.memory + session->spec.limits.disk +
                                        MARK_OURS,
                                .grows = on_growth,
                                .told = on_pumped,
                                .user = part };
    part->mark = mark;
    part->file = blobs_scratch(sessions->runs->blobs, err);
    if (part->file < 0 || pipe_make(&order.pipe, ret_pipe, err) < 0)
        return -1;
    order.file = part->file;
    return pump_out(&order, &part->pump, err);
}

static int check_policy(const struct session *session, error *err)
{
    const struct policy *policy = session->spec.policy;
    uint64_t most = 0;
    if (!policy_bounds_sessions(policy, SESSIONS_MARKS, &most) || session->mark_count < most)
        return 0;
    if (most == 0)
        return fail(err, ERR_LIMIT, "policy %s allows no marks", policy->name);
    return fail(err, ERR_BUSY, "policy %s allows a session %llu marks; remove one", policy->name,
                (unsigned long long) most);
}

static int check_room(const struct session *session, const char *name, error *err)
{
    if (check_policy(session, err) < 0)
        return -1;
    if (session->mark_count >= MARKS_MOST)
        return fail(err, ERR_BUSY, "the session has %u marks, and may have no more; remove one",
                    session->mark_count);
    if (session->sessions->mark_count >= MARKS_ALL_MOST)
        return fail(err, ERR_BUSY, "all sessions together have %d marks already; remove some",
                    MARKS_ALL_MOST);
    if (session->account->mark_count >= share_of(session->account, MARKS_ALL_MOST))
        return fail(err, ERR_BUSY, "the sessions of this key have %u marks; remove some",
                    session->account->mark_count);
    for (const struct mark *mark = session->marks; name[0] && mark; mark = mark->older)
        if (strcmp(mark->name, name) == 0)
            return fail(
                err, ERR_CONFLICT,
                "the session has a mark of the name '%s' already; choose another, or delete it",
                name);
    return 0;
}

static struct mark *mark_new(struct session *session, const struct mark_order *order, error *err)
{
    unsigned char random[16];
    struct mark *mark = calloc(1, sizeof *mark);
    if (!mark || kept_context_take(&mark->kept, order->context, err) < 0) {
        (void) fail(err, ERR_SYSTEM, "no memory for a mark");
        free(mark);
        return NULL;
    }
    randombytes_buf(random, sizeof random);
    (void) snprintf(mark->id, sizeof mark->id, "mrk_");
    (void) sodium_bin2hex(mark->id + 4, sizeof mark->id - 4, random, sizeof random);
    (void) snprintf(mark->name, sizeof mark->name, "%s", order->name);
    (void) snprintf(mark->template, sizeof mark->template, "%s", session->spec.template->digest);
    mark->session = session;
    mark->loop = session->sessions->loop;
    mark->maker = order->asker;
    mark->image.file = mark->files.file = -1;
    mark->created_ms = wall_clock_ms();
    mark->last_context = session->last_context;
    mark->ends = deadline_in(MARK_MS);
    mark->older = session->marks;
    session->marks = mark;
    session->mark_count++;
    session->account->mark_count++;
    session->sessions->mark_count++;
    branching_note_others(session, order->context, &mark->not_carried);
    return mark;
}

int mark_make(struct session *session, const struct mark_order *order, struct mark **ret_mark,
              error *err)
{
    struct copy_order copied = { .context = order->context,
                                 .pipes = { -1, -1 },
                                 .told = on_copied };
    if (account_check_log(session->sessions->runs->accounts, session->account, err) < 0 ||
        check_room(session, order->name, err) < 0)
        return -1;
    struct mark *mark = mark_new(session, order, err);
    if (!mark)
        return -1;
    int result = open_part(mark, &mark->image, &copied.pipes.image, err);
    if (result == 0)
        result = open_part(mark, &mark->files, &copied.pipes.files, err);
    if (result < 0) {
        close_fd(&copied.pipes.image);
        close_fd(&copied.pipes.files);
        mark_remove(mark);
        return -1;
    }
    mark->told = order->told;
    mark->user = order->user;
    mark_hold(mark); /* it may break off at once, and that is told */
    copied.user = mark;
    result = copy_begin(&copied, &mark->copy, err);
    if (result < 0 && mark->session)
        leave_session(mark);
    *ret_mark = mark->session ? mark : NULL;
    mark_let_go(mark);
    return result;
}

/* --- the finding --------------------------------------------------------------------------------
 */

static int no_such_mark(const struct session *session, const char *name, error *err)
{
    char names[110] = "";
    size_t size = 0;
    if (session->state == SESSION_ENDED) /* its marks went with it */
        return session_check_running(session, err);
    for (const struct mark *mark = session->marks; mark; mark = mark->older) {
        int more = snprintf(names + size, sizeof names - size, "%s%s", size > 0 ? ", " : "",
                            mark->name[0] ? mark->name : mark->id);
        if (more < 0 || (size_t) more >= sizeof names - size) {
            names[size] = '\0'; /* the newest are enough */
            break;
        }
        size += (size_t) more;
    }
    return fail(err, ERR_NOT_FOUND, "the session has no mark '%.60s'; it has %s", name,
                size > 0 ? names : "none");
}

int mark_find(const struct session *session, const char *name, struct mark **ret_mark, error *err)
{
    struct mark *mark = session->marks;
    while (mark && strcmp(mark->id, name) != 0 && (!name[0] || strcmp(mark->name, name) != 0))
        mark = mark->older;
    if (!mark)
        return no_such_mark(session, name, err);
    if (!mark->is_ready)
        return fail(err, ERR_CONFLICT, "mark '%.60s' is being made; try again in a moment", name);
    *ret_mark = mark;
    return 0;
}

void mark_write(const struct mark *mark, struct bytes *out)
{
    json_open(out, '{');
    json_string_field(out, "id", mark->id);
    json_string_field(out, "name", mark->name[0] ? mark->name : NULL);
    json_string_field(out, "session", mark->session ? mark->session->id : NULL);
    json_string_field(out, "context", mark->kept.id);
    json_moment_field(out, "created_at", mark->created_ms);
    json_count_field(out, "bytes", mark_bytes(mark));
    json_key(out, "not_carried");
    json_texts(out, &mark->not_carried);
    json_close(out, '}');
}

void marks_write(const struct session *session, struct bytes *out)
{
    json_open(out, '[');
    for (const struct mark *mark = session->marks; mark; mark = mark->older)
        if (mark->is_ready)
            mark_write(mark, out);
    json_close(out, ']');
}

/* --- the way back -------------------------------------------------------------------------------
 */

static void image_is_poured(void *user, uint64_t moved, const error *why)
{
    struct pouring *pouring = user;
    (void) moved;
    (void) why;
    pouring->image = NULL;
}

static void files_are_poured(void *user, uint64_t moved, const error *why)
{
    struct pouring *pouring = user;
    (void) moved;
    (void) why;
    pouring->files = NULL;
}

int pouring_begin(struct pouring *pouring, struct mark *mark, const struct copy_pipes *pipes,
                  error *err)
{
    struct pump_order image = { .loop = mark->loop,
                                .pipe = pipes->image,
                                .file = mark->image.file,
                                .most = mark->image.bytes,
                                .told = image_is_poured,
                                .user = pouring };
    struct pump_order files = image;
    files.pipe = pipes->files;
    files.file = mark->files.file;
    files.most = mark->files.bytes;
    files.told = files_are_poured;
    mark_hold(mark);
    pouring->mark = mark;
    int image_result = pump_in(&image, &pouring->image, err);
    int files_result = pump_in(&files, &pouring->files, err);
    return image_result < 0 || files_result < 0 ? -1 : 0;
}

void pouring_done(struct pouring *pouring)
{
    pump_abandon(pouring->image);
    pump_abandon(pouring->files);
    if (pouring->mark)
        mark_let_go(pouring->mark);
    *pouring = (struct pouring){ 0 };
}
