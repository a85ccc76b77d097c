/* capture.c - copies of a context: one at a time, later ones wait. */
#include "engine/session/capture.h"
#include "engine/sandbox/agent_error.h"

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/utf8.h"
#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"
#include "policy/policy_permits.h"
#include "json/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { REASON_MAX = 4096 }; /* bytes of JSON */

struct capture {
    struct context *context;
    struct capture_pipes pipes;                 /* -1 after they were sent to init */
    void (*told)(void *user, const error *why); /* NULL after the call, or without a waiter */
    void *user;
    bool has_begun;
    bool has_forked, is_saved, has_reason;
    unsigned left_out; /* files that are not copied */
    struct session_operation saving;
    char reason[160]; /* why there is no image, from the interpreter */
    deadline ends;
    struct capture *next;
};

static void tell(struct capture *copy, const error *why)
{
    void (*told)(void *user, const error *why) = copy->told;
    copy->told = NULL;
    if (told)
        told(copy->user, why);
}

static void drop(struct capture *copy)
{
    struct context *context = copy->context;
    (void) list_remove(context->copies, copy, next);
    session_done(context->session, &copy->saving);
    close_fd(&copy->pipes.image);
    close_fd(&copy->pipes.files);
    free(copy);
}

/* The next copy or cell of the context may begin. */
static void proceed_if_copied(struct capture *copy)
{
    struct context *context = copy->context;
    if (!copy->has_forked || !copy->is_saved)
        return;
    if (context->state == CONTEXT_BUSY && !context->running)
        context->state = CONTEXT_IDLE;
    tell(copy, NULL);
    drop(copy);
    context_proceed(context);
}

static int on_frame(void *from, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    struct capture *copy = from;
    error why = { 0 };
    if (frame->kind == AGENT_SKIPPED) {
        copy->left_out++;
        return 0;
    }
    if (frame->kind != AGENT_DONE)
        return fail(err, ERR_PROTOCOL, "glovebox-init sent a frame of kind %u for a copy",
                    frame->kind);
    int saved = error_of_agent(frame, payload, &why);
    session_done(copy->context->session, &copy->saving);
    copy->is_saved = true;
    if (saved < 0) {
        (void) under(&why, "the files could not be copied");
        tell(copy, &why);
    }
    proceed_if_copied(copy);
    return 0;
}

/* --- the order of copies ---------------------------------------------------------------------- */

int capture_check(const struct context *context, error *err)
{
    if (context->kind->driver)
        return fail(err, ERR_BAD_REQUEST,
                    "context %s has language %s; only python contexts can be copied", context->id,
                    context->kind->language);
    if (session_check_running(context->session, err) < 0)
        return -1;
    if (context->running || context->first_queued)
        return fail(err, ERR_CONFLICT,
                    "a cell runs or waits in context %s; wait for it, or interrupt it",
                    context->id);
    if (context->state == CONTEXT_STARTING || context->is_ending)
        return fail(err, ERR_CONFLICT, "context %s starts or ends; try again in a moment",
                    context->id);
    if (context->state == CONTEXT_COLD)
        return fail(err, ERR_CONFLICT, "context %s has no interpreter now; run a cell in it first",
                    context->id);
    return 0;
}

int capture_begin(const struct capture_order *order, struct capture **ret_copy, error *err)
{
    struct context *context = order->context;
    struct capture *copy = calloc(1, sizeof *copy);
    if (!copy || capture_check(context, err) < 0) {
        struct capture_pipes unused = order->pipes;
        close_fd(&unused.image);
        close_fd(&unused.files);
        if (!copy)
            return fail(err, ERR_SYSTEM, "no memory for a copy");
        free(copy);
        return -1;
    }
    *copy = (struct capture){
        .context = context, .pipes = order->pipes, .told = order->told, .user = order->user
    };
    list_append(context->copies, copy, next);
    *ret_copy = copy;
    session_touch(context->session);
    context_proceed(context);
    return 0;
}

void copies_proceed(struct context *context)
{
    struct capture *copy = context->copies;
    struct session *session = context->session;
    error why;
    if (copy->has_begun)
        return;
    copy->saving = (struct session_operation){ .context = copy, .frame = on_frame };
    if (session_begin(session, &copy->saving, &why) < 0) {
        tell(copy, &why);
        drop(copy);
        context_proceed(context);
        return;
    }
    copy->has_begun = true;
    copy->ends = deadline_in(COPY_MS);
    context->state = CONTEXT_BUSY;
    session_send_with(session, &context->process, AGENT_IMAGE, take_fd(&copy->pipes.image));
    session_send_with(session, &copy->saving, AGENT_SAVE, take_fd(&copy->pipes.files));
    session_flush(session);
}

unsigned capture_left_out(const struct capture *copy)
{
    return copy->left_out;
}

void capture_abandon(struct capture *copy)
{
    copy->told = NULL;
    if (!copy->has_begun)
        drop(copy);
    else if (!copy->is_saved)
        session_order(copy->context->session, &copy->saving, AGENT_CANCEL, NULL, 0);
}

/* --- frames of the context -------------------------------------------------------------------- */

/* The text is read as JSON, so it is UTF-8, and is written as JSON again. Only one is read: code in
 * place of our interpreter may send them as fast as it can. */
static void take_reason(struct capture *copy, const unsigned char *payload, size_t size)
{
    auto_json json = NULL;
    struct json_object *value = NULL;
    const size_t head = sizeof(struct agent_result);
    error err;
    if (copy->has_reason || size <= head || size - head > REASON_MAX)
        return;
    copy->has_reason = true;
    if (policy_withholds(copy->context->session->plan.policy))
        return;
    if (json_read((const char *) payload + head, size - head, &json, &err) == 0 &&
        json_object_object_get_ex(json, "value", &value) &&
        json_object_is_type(value, json_type_string)) {
        const char *text = json_object_get_string(value);
        size_t whole = utf8_valid_size(text, strnlen(text, sizeof copy->reason - 1));
        memcpy(copy->reason, text, whole);
        copy->reason[whole] = '\0';
    }
}

static int fault_of(const struct capture *copy, int os, error *err)
{
    if (os == ENOTSUP)
        return fail(err, ERR_CONFLICT, "%s",
                    copy->reason[0] ? copy->reason : "it has something that cannot be copied");
    return fail(err, ERR_LIMIT, "%s; give the session more limits.memory_bytes or processes",
                strerror(os)); /* NOLINT(concurrency-mt-unsafe) */
}

bool copies_hear(struct context *context, const struct agent_frame *frame,
                 const unsigned char *payload)
{
    struct capture *copy = context->copies;
    struct agent_executed executed = { 0 };
    error why = { 0 };
    if (!copy || !copy->has_begun || copy->has_forked ||
        (frame->kind != AGENT_EXECUTED && frame->kind != AGENT_DONE && frame->kind != AGENT_RESULT))
        return false;
    if (frame->kind == AGENT_RESULT) {
        take_reason(copy, payload, frame->size);
        return true;
    }
    if (frame->kind == AGENT_DONE && error_of_agent(frame, payload, &why) == 0)
        return true; /* for a signal */
    if (frame->kind == AGENT_EXECUTED)
        memcpy(&executed, payload, sizeof executed);
    if (executed.exit_code != 0)
        (void) fault_of(copy, executed.exit_code, &why);
    copy->has_forked = true;
    if (why.code != ERR_NONE) {
        (void) under(&why, "the interpreter could not be copied");
        tell(copy, &why);
        capture_abandon(copy);
    }
    proceed_if_copied(copy);
    return true;
}

void copies_end(struct context *context, const error *why)
{
    while (context->copies) {
        struct capture *copy = context->copies;
        context->copies = copy->next;
        tell(copy, why);
        if (copy->has_begun && !copy->is_saved)
            session_order(context->session, &copy->saving, AGENT_CANCEL, NULL, 0);
        drop(copy);
    }
}

/* An interpreter that does not fork is killed, like one whose cell ignores an interrupt. */
void copies_look(struct context *context)
{
    struct capture *copy = context->copies;
    error why;
    if (!copy || !copy->has_begun || !deadline_has_passed(copy->ends))
        return;
    (void) fail(&why, ERR_TIMEOUT, "the context and its files were not copied in %d s",
                COPY_MS / 1000);
    tell(copy, &why);
    capture_abandon(copy);
    if (copy->has_forked || context->is_ending)
        return;
    context->end = "it did not write its image in time, and was killed";
    context->end_is_ours = true;
    context_kill(context);
}
