/* contexts.c - starts interpreters in a session, gives each its cells one by one, and records why
 * one has ended. */
#include "engine/session/contexts.h"

#include "base/list.h"

#include "engine/review/precheck.h"
#include "engine/session/session_internal.h"
#include "model/languages.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BETWEEN_MAX = 64 * 1024 };

static int on_frame(void *from, const struct agent_frame *frame, const unsigned char *payload,
                    error *err)
{
    return context_on_frame(from, frame, payload, err);
}

/* --- the interpreter -------------------------------------------------------------------------- */

/* Takes the interpreter that came with the sandbox, which is ready. */
static int take_parked_interpreter(struct context *context, error *err)
{
    context->process.id = AGENT_INTERPRETER;
    if (session_begin(context->session, &context->process, err) < 0)
        return -1;
    context->session->has_parked_interpreter = false;
    context->state = CONTEXT_IDLE;
    return 0;
}

/* Forks another child of the zygote. The spawner takes one order at a time: a context that must
 * wait is started when the order before has ended. */
static int fork_interpreter(struct context *context, error *err)
{
    struct session *session = context->session;
    if (session->plan.set < 0)
        return fail(err, ERR_UNAVAILABLE, "no interpreter is kept here; start glovebox serve");
    if (session->injected)
        return 0;
    if (session_begin(session, &context->process, err) < 0)
        return -1;
    if (spawner_inject(session->sessions->pool->spawner, sandbox_name(session->sandbox),
                       context->process.id, err) < 0) {
        session_done(session, &context->process);
        return -1;
    }
    session->injected = context;
    context->state = CONTEXT_STARTING;
    context->start_ends = deadline_in(CONTEXT_START_MS);
    return 0;
}

struct session_operation context_operation(struct context *context)
{
    return (
        struct session_operation){ .context = context, .frame = on_frame, .hears_denials = true };
}

int context_warm(struct context *context, error *err)
{
    if (context->state != CONTEXT_COLD || context->kind->driver ||
        !context->session->has_parked_interpreter)
        return 0;
    context->process = context_operation(context);
    context->is_fresh = true;
    return take_parked_interpreter(context, err);
}

static int start(struct context *context, error *err)
{
    context->process = context_operation(context);
    context->is_fresh = true;
    if (context->kind->driver)
        return context_start_driver(context, err);
    if (context->session->has_parked_interpreter)
        return take_parked_interpreter(context, err);
    return fork_interpreter(context, err);
}

/* Fails every waiting cell of the context with the reason why the interpreter did not start. */
static void refuse_waiting(struct context *context, const error *why)
{
    while (context->first_queued) {
        struct run *run = context->first_queued;
        cell_lost_session(run, why);
    }
}

void context_proceed(struct context *context)
{
    error err;
    if (!session_is_running(context->session) || context->is_ending)
        return;
    if (context->copies) {
        if (context->state == CONTEXT_IDLE)
            copies_proceed(context);
        return;
    }
    if (!context->first_queued || context->first_queued->check)
        return;
    if (context->state == CONTEXT_COLD && start(context, &err) < 0) {
        context->state = CONTEXT_COLD;
        refuse_waiting(context, &err);
        return;
    }
    if (context->state != CONTEXT_IDLE)
        return;
    struct run *run = context->first_queued;
    context->first_queued = run->next_queued;
    if (!context->first_queued)
        context->last_queued = NULL;
    run->next_queued = NULL;
    context->queued--;
    context->running = run;
    context->state = CONTEXT_BUSY;
    cell_begin(run);
}

/* --- frames of the interpreter ---------------------------------------------------------------- */

/* Output of a background thread or a child after its cell: the next cell reports it, as in a
 * notebook. */
static void keep_between(struct context *context, const struct agent_frame *frame,
                         const unsigned char *payload)
{
    size_t room = BETWEEN_MAX - context->between.size;
    size_t size = frame->size < room ? frame->size : room;
    bytes_add(&context->between, payload, size);
}

/* Starts the next context that waits for a fork. */
static void fork_is_over(struct context *context)
{
    struct session *session = context->session;
    if (session->injected != context)
        return;
    session->injected = NULL;
    for (struct context *other = session->contexts; other; other = other->next)
        if (other != context && other->state == CONTEXT_COLD && other->first_queued) {
            context_proceed(other);
            return;
        }
}

static int interpreter_ended(struct context *context, const struct agent_frame *frame,
                             const unsigned char *payload, error *err)
{
    struct agent_exited exited;
    memcpy(&exited, payload, sizeof exited);
    struct run *run = context->running;
    session_done(context->session, &context->process);
    if (!context->end_is_ours)
        context->end = context_describe_end(context, &exited);
    context->end_is_ours = context->is_ending = false;
    context->state = CONTEXT_COLD;
    context->process.id = 0;
    context->running = NULL;
    session_done(context->session, &context->file);
    error why;
    (void) fail(&why, ERR_CONFLICT, "the interpreter of context %s has ended: %s", context->id,
                context->end);
    copies_end(context, &why);
    fork_is_over(context);
    if (run && cell_on_frame(run, frame, payload, err) < 0)
        return -1;
    if (context->is_removed)
        context_free(context);
    else
        context_proceed(context);
    return 0;
}

static void start_failed(struct context *context, const struct agent_frame *frame,
                         const unsigned char *payload)
{
    error why;
    (void) fail(&why, ERR_UNAVAILABLE, "the interpreter could not be started: %.*s",
                (int) (frame->size - sizeof(struct agent_done)),
                (const char *) payload + sizeof(struct agent_done));
    session_done(context->session, &context->process);
    context->state = CONTEXT_COLD;
    context->end = "it could not be started";
    fork_is_over(context);
    refuse_waiting(context, &why);
    if (context->is_removed)
        context_free(context);
}

/* Checks the deadlines of contexts that are starting. */
static void look(struct session *session)
{
    error why;
    if (!session_is_running(session))
        return;
    for (struct context *context = session->contexts; context; context = context->next) {
        copies_look(context);
        if (context->state != CONTEXT_STARTING || !deadline_has_passed(context->start_ends))
            continue;
        (void) fail(&why, ERR_TIMEOUT, "the interpreter of context %s did not start in %d s",
                    context->id, CONTEXT_START_MS / 1000);
        session_end(session, END_LOST, &why);
        return;
    }
}

int context_on_frame(struct context *context, const struct agent_frame *frame,
                     const unsigned char *payload, error *err)
{
    if (copies_hear(context, frame, payload))
        return 0;
    switch (frame->kind) {
    case AGENT_STARTED:
        if (context->state == CONTEXT_STARTING)
            context->state = CONTEXT_IDLE;
        fork_is_over(context);
        if (context->is_removed)
            context_kill(context);
        context_proceed(context);
        return 0;
    case AGENT_DONE: /* for a START that failed, or for a signal */
        if (context->state == CONTEXT_STARTING)
            start_failed(context, frame, payload);
        return 0;
    case AGENT_CREDIT:
        return 0;
    case AGENT_EXITED:
        return interpreter_ended(context, frame, payload, err);
    case AGENT_OUTPUT:
        if (!context->running) {
            keep_between(context, frame, payload);
            return 0;
        }
        break;
    default:
        break;
    }
    return context->running ? cell_on_frame(context->running, frame, payload, err) : 0;
}

void context_kill(struct context *context)
{
    struct agent_signal order = { .number = 9, .whole_group = 1 };
    if (context->process.id == 0)
        return;
    context->is_ending = true;
    session_order(context->session, &context->process, AGENT_SIGNAL, &order, sizeof order);
}

/* --- calls of doors --------------------------------------------------------------------------- */

int context_interrupt(struct context *context, error *err)
{
    (void) err;
    session_touch(context->session);
    if (!context->running)
        return CONTEXT_WAS_IDLE;
    cell_interrupt(context->running);
    return 0;
}

int context_restart(struct context *context, error *err)
{
    if (session_check_running(context->session, err) < 0)
        return -1;
    session_touch(context->session);
    if (context->state != CONTEXT_IDLE && context->state != CONTEXT_BUSY)
        return 0; /* no cell has run in it */
    context->end = "a restart was requested";
    context->end_is_ours = true;
    bytes_done(&context->between);
    context_kill(context);
    return 0;
}

static struct context *context_new(struct session *session, const char *id,
                                   const struct context_request *request, error *err)
{
    if (session->context_count >= CONTEXTS_MAX) {
        (void) fail(err, ERR_BUSY, "the session has %u contexts already; remove one",
                    session->context_count);
        return NULL;
    }
    struct context *context = calloc(1, sizeof *context);
    if (!context) {
        (void) fail(err, ERR_SYSTEM, "no memory for a context");
        return NULL;
    }
    context->session = session;
    (void) snprintf(context->id, sizeof context->id, "%s", id);
    const char *name =
        request->given && request->given->language ? request->given->language : "python";
    name = context_language(session->plan.template, name);
    const char *folder = request->folder           ? request->folder
                         : session->request.folder ? session->request.folder
                                                   : "/workspace";
    context->folder = strdup(folder);
    context->kind = context_kind_of(name);
    if (!context->kind)
        (void) fail(err, ERR_BAD_REQUEST,
                    "language '%.40s' has no contexts; python, bash, javascript and r have", name);
    else if (!context->folder)
        (void) fail(err, ERR_SYSTEM, "no memory for a context");
    else if (run_plan_language(&session->plan, name, &context->language, err) == 0 &&
             run_plan_environment(&session->plan, session->request.place, request->given,
                                  &context->variables, err) == 0) {
        list_append(session->contexts, context, next);
        session->context_count++;
        return context;
    }
    context_free(context);
    return NULL;
}

void context_free(struct context *context)
{
    struct session *session = context->session;
    if (list_remove(session->contexts, context, next))
        session->context_count--;
    free(context->folder);
    bytes_done(&context->variables.text);
    bytes_done(&context->between);
    free(context);
}

int context_create(struct session *session, struct context_request *request,
                   struct context **ret_context, error *err)
{
    char id[CONTEXT_ID_SIZE];
    struct context *context = NULL;
    (void) snprintf(id, sizeof id, "ctx_%u", session->last_context + 1);
    if (session_check_running(session, err) == 0)
        context = context_new(session, id, request, err);
    context_request_done(request);
    if (!context)
        return -1;
    session->last_context++;
    *ret_context = context;
    return 0;
}

int context_find(struct session *session, const char *id, struct context **ret_context, error *err)
{
    const struct language *language = template_language(session->plan.template, id);
    *ret_context = NULL;
    for (struct context *each = session->contexts; each; each = each->next)
        if (!each->is_removed && language_is(each->id, id) &&
            (strcmp(each->id, id) == 0 || (!*ret_context && each->language == language)))
            *ret_context = each;
    if (*ret_context || session_check_running(session, err) < 0)
        return *ret_context ? 0 : -1;
    error cause;
    if (!language && run_plan_language(&session->plan, id, &language, &cause) < 0)
        return fail(err, ERR_NOT_FOUND, "the session has no context '%.40s': %s", id, cause.text);
    struct context_request request = { .given = &(struct run_request){ .language = id } };
    *ret_context = context_new(session, id, &request, err);
    return *ret_context ? 0 : -1;
}

static void on_checked(struct run *run)
{
    if (run_ask_checked(run, run->cell->request.given))
        context_proceed(run->cell->context);
    else
        run_reject(run);
}

int context_run(struct context *context, struct context_request *request, struct run **ret_run,
                error *err)
{
    struct session *session = context->session;
    int result = -1;
    if (session_check_running(session, err) < 0)
        result = -1;
    else if (context->queued >= CELLS_WAITING_MAX)
        (void) fail(err, ERR_BUSY, "%u cells wait in this context already; try again later",
                    context->queued);
    else if (account_admit(session->sessions->runs->accounts, session->account, err) == 0)
        result = cell_new(context, request, ret_run, err);
    context_request_done(request);
    if (result < 0)
        return -1;
    rate_take(&session->account->rate);
    *(context->last_queued ? &context->last_queued->next_queued : &context->first_queued) =
        *ret_run;
    context->last_queued = *ret_run;
    context->queued++;
    session_touch(session);
    if (check_is_wanted(*ret_run))
        check_begin(*ret_run, (*ret_run)->cell->request.given, true, on_checked);
    else if (run_is_held(*ret_run))
        run_reject(*ret_run);
    else
        context_proceed(context);
    return 0;
}

void context_remove(struct context *context)
{
    error why;
    (void) fail(&why, ERR_CONFLICT, "the context was removed");
    session_touch(context->session);
    context->is_removed = true;
    refuse_waiting(context, &why);
    if (context->state == CONTEXT_COLD) {
        context_free(context);
        return;
    }
    if (context->state == CONTEXT_STARTING)
        return; /* it is removed when it has started */
    context->end = "it was removed";
    context->end_is_ours = true;
    context_kill(context);
}

static void leave_sandbox(struct session *session, const error *why)
{
    while (session->contexts) {
        struct context *context = session->contexts;
        copies_end(context, why);
        if (context->running)
            cell_lost_session(context->running, why);
        refuse_waiting(context, why);
        session_done(session, &context->process);
        session_done(session, &context->file);
        context_free(context);
    }
}

const struct session_activity context_activity = { .leave_sandbox = leave_sandbox, .look = look };
