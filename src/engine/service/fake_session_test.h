/* fake_session_test.h - a session without a sandbox: frames to its init are kept, and the test
 * sends the answers of init. Linked with fake_session of meson.build (--wrap). */
#pragma once

#include "base/test.h"

#include "engine/sandbox/sandbox.h"
#include "engine/service/service.h"
#include "engine/session/session_internal.h"

#include <string.h>

enum { SENT_MAX = 64 };

static struct {
    enum agent_kind kind;
    size_t size;
    char payload[256]; /* the first bytes */
} sent[SENT_MAX];
static unsigned sent_count;
static bool is_jammed;     /* init reads nothing at present */
static bool tells_of_room; /* the next flush reports room again */
static unsigned wakes;

static struct policy fake_policy;
static struct session fake_session;
static struct sessions fake_sessions;
static const struct service fake_service;
static const struct caller fake_caller;

int __wrap_sessions_enter(const struct sessions *sessions, const struct account *account,
                          const char *id, struct session **ret_session, error *err);
void __wrap_sandbox_send(struct sandbox *sandbox, const struct agent_frame *frame,
                         const struct iovec *parts, int part_count);
void __wrap_sandbox_flush(struct sandbox *sandbox);
bool __wrap_sandbox_has_room(const struct sandbox *sandbox);

int __wrap_sessions_enter(const struct sessions *sessions, const struct account *account,
                          const char *id, struct session **ret_session, error *err)
{
    (void) sessions;
    (void) account;
    if (strcmp(id, fake_session.id) != 0)
        return fail(err, ERR_NOT_FOUND, "no session has the id '%s'", id);
    *ret_session = &fake_session;
    return 0;
}

void __wrap_sandbox_send(struct sandbox *sandbox, const struct agent_frame *frame,
                         const struct iovec *parts, int part_count)
{
    (void) sandbox;
    require(sent_count < SENT_MAX, "more frames than a test sends");
    sent[sent_count].kind = (enum agent_kind) frame->kind;
    sent[sent_count].size = 0;
    for (int i = 0; i < part_count; i++) {
        size_t at = sent[sent_count].size;
        size_t room = at < sizeof sent->payload ? sizeof sent->payload - at : 0;
        size_t kept = parts[i].iov_len < room ? parts[i].iov_len : room;
        if (kept > 0)
            memcpy(sent[sent_count].payload + at, parts[i].iov_base, kept);
        sent[sent_count].size += parts[i].iov_len;
    }
    sent_count++;
}

void __wrap_sandbox_flush(struct sandbox *sandbox)
{
    (void) sandbox;
    const struct session_operation *operation = fake_session.operations;
    if (tells_of_room && operation) {
        tells_of_room = false;
        operation->room(operation->context);
    }
}

bool __wrap_sandbox_has_room(const struct sandbox *sandbox)
{
    (void) sandbox;
    return !is_jammed;
}

static void on_waked(void *context)
{
    (void) context;
    wakes++;
}

static const struct waker fake_waker = { .woken = on_waked };

/* A running session without operations. */
static inline void fake_session_begin(void)
{
    memset(&fake_policy, 0,
           sizeof fake_policy); /* not by a literal, which would lie on the stack */
    memset(&fake_session, 0, sizeof fake_session);
    (void) snprintf(fake_policy.name, sizeof fake_policy.name, "fake");
    (void) snprintf(fake_session.id, sizeof fake_session.id, "ses_fake");
    fake_session.state = SESSION_RUNNING;
    fake_session.sessions = &fake_sessions;
    fake_session.plan.policy = &fake_policy;
    sent_count = wakes = 0;
    is_jammed = tells_of_room = false;
}

/* Its policy withholds output that is not as expected. */
static inline void fake_session_withholds(void)
{
    fake_policy.expect.on_fault = ON_FAULT_WITHHOLD;
    (void) snprintf(fake_policy.expect.text, sizeof fake_policy.expect.text, "[{}]");
}

/* Init answers the only operation that is under way. */
static inline int answer(enum agent_kind kind, const void *payload, size_t size, error *err)
{
    const struct session_operation *operation = fake_session.operations;
    const struct agent_frame frame = { .kind = (uint16_t) kind,
                                       .size = (uint32_t) size,
                                       .id = operation ? operation->id : 0 };
    require(operation && !operation->next, "one operation is under way");
    return operation->frame(operation->context, &frame, payload, err);
}

/* DONE with an errno; 0: success. */
static inline void answer_done(int os)
{
    const struct agent_done done = { .os = os };
    error err;
    expect(answer(AGENT_DONE, &done, sizeof done, &err) == 0, "%s", err.text);
}

/* Ends the session by the loss of its sandbox. */
static inline void fake_session_ends(void)
{
    struct session_operation *operation = fake_session.operations;
    error why;
    (void) fail(&why, ERR_CONFLICT, "its sandbox broke");
    fake_session.state = SESSION_ENDED;
    fake_session.operations = NULL;
    fake_session.operation_count = 0;
    operation->ended(operation->context, &why);
}
