/* fake_engine_test.h - the engine of gloveboxd over the spawner and sandboxes of
 * fake_sandboxes_test.h: one template, the policies of the tree, no keys, nothing on disk.
 *
 *     fake_begin();
 *     fake_submit("{\"code\": \"1\"}", &run, &err);     the spawner builds a sandbox, in slot 0
 *     fake_end(); */
#pragma once

#include "engine/run/run.h"
#include "engine/sandbox/fake_sandboxes_test.h"
#include "engine/session/session_registry.h"

#include <signal.h>

static struct {
    struct policies policies;
    struct templates templates;
    struct template python;
    struct accounts accounts;
    struct blob_store *blobs;
    struct runs runs;
    struct sessions sessions;
} engine;

static inline void fake_pool_changed(void *context)
{
    (void) context;
    runs_proceed(&engine.runs);
    sessions_proceed(&engine.sessions);
}

static inline void fake_open_engine(int socket)
{
    error err;
    fake.pool.changed = fake_pool_changed;
    require(pool_open(&fake.pool, &fake.spawner, &fake.loop, socket, &err) == 0, "%s", err.text);
    require(accounts_open(&engine.accounts, &fake.loop, NULL, &err) == 0, "%s", err.text);
    require(blobs_open(NULL, &(struct blob_bounds){ 1 << 20, 100 }, &engine.blobs, &err) == 0, "%s",
            err.text);
    engine.runs = (struct runs){ .loop = &fake.loop,
                                 .pool = &fake.pool,
                                 .policies = &engine.policies,
                                 .templates = &engine.templates,
                                 .blobs = engine.blobs,
                                 .accounts = &engine.accounts,
                                 .queued_max = 8 };
    runs_open(&engine.runs);
    engine.runs.processors = 1;
    engine.sessions = (struct sessions){ .loop = &fake.loop,
                                         .runs = &engine.runs,
                                         .pool = &fake.pool,
                                         .policies = &engine.policies,
                                         .templates = &engine.templates,
                                         .activities = session_activities,
                                         .session_checkpoint_bytes_max = 64 << 20 };
    require(sessions_open(&engine.sessions, NULL, &err) == 0, "%s", err.text);
}

static inline void fake_begin(void)
{
    int pair[2];
    error err;
    (void) signal(SIGPIPE, SIG_IGN); /* as gloveboxd does */
    memset(&fake, 0, sizeof fake);
    memset(&engine, 0, sizeof engine);
    for_each(slot, fake.slots)
        slot->stream = slot->in_fd = -1;
    fake.clock_us = INT64_C(1000000000);
    (void) snprintf(fake.group, sizeof fake.group, "/tmp/glovebox-engine-test-XXXXXX");
    require(mkdtemp(fake.group), "a folder");
    fake_use_cpu(0);
    engine.python = (struct template){
        .name = "python",
        .digest = "sha256:0",
        .language_count = 2,
        .languages = { { .name = "python",
                         .file = "main.py",
                         .command_count = 2,
                         .command = { "python3", "{file}" } },
                       { .name = "bash",
                         .file = "main.sh",
                         .command_count = 2,
                         .command = { "bash", "{file}" } } },
        .set_count = 1,
        .sets = { { .name = "base" } },
        .held = -1,
        .trusted = -1,
    };
    engine.templates.list[0] = &engine.python;
    require(uv_loop_init(&fake.loop) == 0, "a loop");
    loop_monitor_open(&fake.loop);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has begun yet */
    const char *policies = getenv("GLOVEBOX_POLICIES");
    require(policies_load(&engine.policies, policies, &err) == 0, "%s", err.text);
    require(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) == 0, "a socket");
    fake.spawner_end = pair[0];
    require(fcntl(pair[0], F_SETFL, O_NONBLOCK) == 0, "a socket that does not block");
    fake_open_engine(pair[1]);
    const struct spawn_hello hello = { .version = SPAWN_VERSION,
                                       .slots = FAKE_SLOTS,
                                       .groups = 1U << GROUP_UNIFIED };
    require(packet_send(fake.spawner_end, SPAWN_HELLO, &hello, sizeof hello, NULL, 0, &err) == 0,
            "%s", err.text);
    fake_turn();
}

/* Closes everything in the daemon's order; the test fails if anything is left. */
static inline void fake_end(void)
{
    char path[96];
    sessions_close(&engine.sessions);
    for_each(slot, fake.slots)
        if (slot->stream >= 0)
            (void) shutdown(slot->stream, SHUT_RDWR); /* runs that are under way are lost */
    fake_turn();
    runs_close(&engine.runs);
    accounts_close(&engine.accounts);
    pool_close(&fake.pool);
    fake_turn();
    spawner_close(&fake.spawner);
    blobs_leave(engine.blobs);
    loop_monitor_close();
    fake_until(!uv_loop_alive(&fake.loop)); /* jobs of the disk have ended */
    expect(uv_loop_close(&fake.loop) == 0, "a handle of the loop is still open");
    for_each(slot, fake.slots) {
        for (unsigned i = 0; i < slot->count; i++)
            if (slot->frames[i].fd >= 0)
                (void) close(slot->frames[i].fd);
        if (slot->stream >= 0)
            (void) close(slot->stream);
    }
    (void) close(fake.spawner_end);
    blobs_close(engine.blobs);
    accounts_done(&engine.accounts);
    policies_done(&engine.policies);
    (void) snprintf(path, sizeof path, "%s/cpu.stat", fake.group);
    (void) unlink(path);
    (void) rmdir(fake.group);
}

static inline struct json_object *fake_json(const char *text)
{
    struct json_object *json = json_tokener_parse(text);
    require(json, "'%s' is JSON", text);
    return json;
}

/* Submits a run, as JSON. It is valid until the next turn, or while it has a listener. */
static inline int fake_submit(const char *text, struct run **ret_run, error *err)
{
    struct run_request *request = NULL;
    require(request_read(fake_json(text), &request, err) == 0, "%s", err->text);
    request->account = &engine.accounts.local;
    return runs_submit(&engine.runs, request, ret_run, err);
}

/* A running session of the policy `data`. */
static inline struct session *fake_session(const char *text)
{
    struct session_request request;
    struct session *session = NULL;
    error err;
    require(session_request_read(fake_json(text), true, &request, &err) == 0, "%s", err.text);
    request.place->account = &engine.accounts.local;
    require(session_create(&engine.sessions, &request, NULL, &session, &err) == 0, "%s", err.text);
    fake_turn();
    return session;
}

/* The context of this name, with a cell in it. The cell has no listener: it is valid until a
 * thousand more runs have ended. */
static inline struct context *fake_context(struct session *session, const char *name)
{
    struct context *context = NULL;
    error err;
    require(context_find(session, name, &context, &err) == 0, "%s", err.text);
    return context;
}

static inline int fake_cell(struct context *context, const char *text, struct run **ret_run,
                            error *err)
{
    struct context_request request;
    require(context_request_read(fake_json(text), true, &request, err) == 0, "%s", err->text);
    request.given->account = &engine.accounts.local;
    return context_run(context, &request, ret_run, err);
}

static inline struct run *fake_cell_begins(struct context *context, const char *text)
{
    struct run *run = NULL;
    error err;
    require(fake_cell(context, text, &run, &err) == 0, "%s", err.text);
    fake_turn();
    return run;
}

/* Ends a cell: 0, or 1 if it raised. */
static inline void fake_cell_ends(unsigned slot, uint32_t interpreter, int32_t exit_code)
{
    const struct agent_executed word = { .exit_code = exit_code, .count = 1 };
    fake_says(slot, AGENT_EXECUTED, interpreter, &word, sizeof word);
}

static inline void fake_interpreter_ends(unsigned slot, uint32_t interpreter, int32_t signal)
{
    const struct agent_exited word = { .exit_code = signal ? -1 : 0, .signal = signal };
    fake_says(slot, AGENT_EXITED, interpreter, &word, sizeof word);
}

static inline void fake_started(unsigned slot, uint32_t id)
{
    fake_says(slot, AGENT_STARTED, id, &(struct agent_started){ .pid = 9 },
              sizeof(struct agent_started));
}

/* The last signal that init was told to send since the last call; 0: none. */
static inline uint32_t fake_signal(unsigned slot)
{
    struct agent_signal order = { 0 };
    for (const struct fake_frame *frame; (frame = fake_order(slot, AGENT_SIGNAL)) != NULL;)
        memcpy(&order, frame->payload, sizeof order);
    return order.number;
}
