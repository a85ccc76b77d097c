/* service_checkpoints.c - see service_checkpoints.h. */
#include "engine/service/service_checkpoints.h"

#include "base/table.h"
#include "engine/service/service_sessions.h"
#include "engine/session/branch.h"
#include "engine/session/checkpoints.h"
#include "engine/session/rollback.h"
#include "engine/session/session_registry.h"
#include "json/field_table.h"

#include <stdlib.h>
#include <string.h>

struct checkpoint_wait {
    struct waker waker;
    bool is_awaited; /* the call that began it has returned */
    bool is_over;
    error failure;                         /* code ERR_NONE: it succeeded */
    struct session *session;               /* to roll back; NULL: a checkpoint is made */
    struct session_checkpoint *checkpoint; /* being made; NULL after its end */
    struct bytes document;                 /* of the new checkpoint */
};

void service_checkpoints_write(const struct session *session, struct bytes *out)
{
    checkpoints_write(session, out);
}

int service_checkpoint_remove(struct session *session, const char *name, struct bytes *out,
                              error *err)
{
    struct session_checkpoint *checkpoint;
    if (session_checkpoint_find(session, name, &checkpoint, err) < 0)
        return -1;
    session_checkpoint_write(checkpoint, out);
    session_checkpoint_remove(checkpoint);
    return 0;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static struct checkpoint_wait *wait_new(const struct waker *waker, error *err)
{
    struct checkpoint_wait *wait = calloc(1, sizeof *wait);
    if (wait)
        wait->waker = *waker;
    else
        (void) fail(err, ERR_SYSTEM, "no memory to wait for a checkpoint");
    return wait;
}

/* Gives the wait to the caller if the work has begun, else frees it. */
static int hand_over(struct checkpoint_wait *wait, int begun, struct checkpoint_wait **ret_wait)
{
    if (begun < 0) {
        checkpoint_wait_done(wait);
        return -1;
    }
    wait->is_awaited = true;
    *ret_wait = wait;
    return 0;
}

static void be_over(struct checkpoint_wait *wait, const error *why)
{
    wait->is_over = true;
    if (why)
        wait->failure = *why;
    if (wait->is_awaited)
        wait->waker.woken(wait->waker.context);
}

bool checkpoint_wait_is_over(const struct checkpoint_wait *wait)
{
    return wait->is_over;
}

int checkpoint_wait_result(struct checkpoint_wait *wait, struct bytes *out, error *err)
{
    if (wait->failure.code != ERR_NONE) {
        *err = wait->failure;
        return -1;
    }
    if (wait->session)
        service_session_write(wait->session, out);
    else
        bytes_add(out, wait->document.data, wait->document.size);
    return 0;
}

void checkpoint_wait_done(struct checkpoint_wait *wait)
{
    if (wait->checkpoint)
        session_checkpoint_remove(wait->checkpoint);
    if (wait->session && !wait->is_over)
        rollback_unsubscribe(wait->session, wait);
    bytes_done(&wait->document);
    free(wait);
}

/* --- make a checkpoint ------------------------------------------------------------------------ */

static void on_checkpoint(void *user, struct session_checkpoint *checkpoint, const error *why)
{
    struct checkpoint_wait *wait = user;
    wait->checkpoint = NULL;
    if (!why)
        session_checkpoint_write(checkpoint, &wait->document);
    be_over(wait, why);
}

static int check_name(struct bytes *name, error *err)
{
    if (strspn(bytes_text(name), "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                 "0123456789_-") == name->size &&
        strncmp(bytes_text(name), "ckp_", 4) != 0)
        return 0;
    return fail(err, ERR_BAD_REQUEST,
                "a checkpoint's name is made of letters, digits, '-' and '_', and does not begin "
                "with ckp_");
}

static int make(struct checkpoint_wait *wait, const struct caller *caller, struct session *session,
                struct json_object *request, error *err)
{
    auto_bytes context = { 0 }, name = { 0 };
    const struct field fields[] = {
        { "name", FIELD_TEXT, &name, CHECKPOINT_NAME_SIZE - 1 },
        { "context", FIELD_TEXT, &context, CONTEXT_ID_SIZE - 1 },
    };
    struct session_checkpoint_order order = { .asker = caller->account,
                                              .told = on_checkpoint,
                                              .user = wait };
    if (fields_read(request, fields, COUNT_OF(fields), err) < 0 || check_name(&name, err) < 0)
        return -1;
    order.name = bytes_text(&name);
    if (branch_choose(session, context.size > 0 ? bytes_text(&context) : NULL, &order.context,
                      err) < 0)
        return -1;
    return session_checkpoint_make(session, &order, &wait->checkpoint, err);
}

int service_checkpoint_make(const struct checkpoint_asker *asker, struct json_object *request,
                            struct checkpoint_wait **ret_wait, error *err)
{
    struct checkpoint_wait *wait = wait_new(asker->waker, err);
    if (!wait)
        return -1;
    return hand_over(wait, make(wait, asker->caller, asker->session, request, err), ret_wait);
}

/* --- roll back -------------------------------------------------------------------------------- */

static void on_rolled_back(void *user, const error *why)
{
    be_over(user, why);
}

int service_session_roll_back(const struct checkpoint_asker *asker, const char *checkpoint,
                              struct checkpoint_wait **ret_wait, error *err)
{
    struct session *session = asker->session;
    struct rollback_order order = { .asker = asker->caller->account, .told = on_rolled_back };
    if (session_checkpoint_find(session, checkpoint, &order.checkpoint, err) < 0)
        return -1;
    struct checkpoint_wait *wait = wait_new(asker->waker, err);
    if (!wait)
        return -1;
    order.user = wait;
    int begun = session_roll_back(session, &order, err);
    if (begun == 0)
        wait->session = session;
    return hand_over(wait, begun, ret_wait);
}
