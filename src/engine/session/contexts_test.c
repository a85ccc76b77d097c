/* contexts_test.c - interpreters of a session: how each starts, what waits for it, and how it
 * ends. */
#include "engine/session/contexts.h"

#include "engine/session/fake_engine_test.h"
#include "engine/session/session_internal.h"

static struct session *session;

static void begin(void)
{
    fake_begin();
    session = fake_session("{\"policy\":\"data\"}");
    require(session->state == SESSION_RUNNING, "it is in state %u", session->state);
}

static struct context *make(const char *text)
{
    struct context_request request;
    struct context *context = NULL;
    error err;
    require(context_request_read(fake_json(text), false, &request, &err) == 0, "%s", err.text);
    require(context_create(session, &request, &context, &err) == 0, "%s", err.text);
    return context;
}

TEST(a_context_is_found_by_its_id_or_its_language)
{
    static const struct {
        const char *name;
        int32_t code;
    } facts[] = {
        { "python", ERR_NONE },     { "bash", ERR_NONE },   { "ctx_1", ERR_NONE },
        { "ctx_9", ERR_NOT_FOUND }, { "r", ERR_NOT_FOUND }, { "", ERR_NOT_FOUND },
    };
    begin();
    expect(strcmp(make("{}")->id, "ctx_1") == 0, "the first is ctx_1");
    for_each(fact, facts) {
        struct context *one = NULL, *again = NULL;
        error err = { 0 };
        int result = context_find(session, fact->name, &one, &err);
        expect(fact->code ? result < 0 && err.code == fact->code : result == 0, "'%s' gave %d: %s",
               fact->name, result, err.text);
        expect(result < 0 || (context_find(session, fact->name, &again, &err) == 0 && one == again),
               "'%s' is another one each time", fact->name);
    }
    expect(fake_context(session, "py") == fake_context(session, "python") &&
               fake_context(session, "shell") == fake_context(session, "bash"),
           "an alias is its language");
    expect(session->context_count == 3, "%u contexts", session->context_count);
    fake_end();
}

TEST(a_session_has_so_many_contexts_and_a_context_so_many_cells)
{
    struct context_request request = { 0 };
    struct context *context = NULL;
    struct run *run;
    error err = { 0 };
    begin();
    for (int i = 0; i < CONTEXTS_MAX; i++)
        context = make("{}");
    require(context_request_read(fake_json("{}"), false, &request, &err) == 0, "%s", err.text);
    expect(context_create(session, &request, &(struct context *){ NULL }, &err) < 0 &&
               err.code == ERR_BUSY,
           "one more: %s", err.text);
    expect(session->context_count == CONTEXTS_MAX, "%u contexts", session->context_count);
    (void) fake_cell_begins(context, "{\"code\":\"1\"}"); /* this one runs */
    for (int i = 0; i < CELLS_WAITING_MAX; i++)
        require(fake_cell(context, "{\"code\":\"1\"}", &run, &err) == 0, "%d: %s", i, err.text);
    expect(fake_cell(context, "{\"code\":\"1\"}", &run, &err) < 0 && err.code == ERR_BUSY,
           "one more: %s", err.text);
    expect(context->queued == CELLS_WAITING_MAX, "%u wait", context->queued);
    fake_end();
}

TEST(interpreters_are_forked_one_after_the_other)
{
    begin();
    (void) fake_cell_begins(make("{}"), "{\"code\":\"1\"}"); /* takes the one that is there */
    expect(fake.injected.id == 0, "nothing is forked for the first");
    struct context *second = make("{}"), *third = make("{}");
    const struct run *two = fake_cell_begins(second, "{\"code\":\"2\"}");
    const struct run *three = fake_cell_begins(third, "{\"code\":\"3\"}");
    uint32_t id = fake.injected.id;
    expect(id == second->process.id && id != 0, "the second is asked for: %u", id);
    expect(third->state == CONTEXT_COLD, "the third waits");
    fake_started(0, id);
    expect(two->state == RUN_RUNNING, "its cell is %s", run_state_name(two->state));
    expect(fake.injected.id != id && third->state == CONTEXT_STARTING, "the third follows");
    fake_started(0, fake.injected.id);
    expect(three->state == RUN_RUNNING, "its cell is %s", run_state_name(three->state));
    fake_end();
}

TEST(cells_of_an_interpreter_that_does_not_start_fail)
{
    const struct agent_done refused = { .os = 12 };
    begin();
    (void) fake_cell_begins(make("{}"), "{\"code\":\"1\"}");
    struct context *second = make("{}"), *third = make("{}");
    const struct run *two = fake_cell_begins(second, "{\"code\":\"2\"}");
    (void) fake_cell_begins(third, "{\"code\":\"3\"}");
    uint32_t id = fake.injected.id;
    fake_says(0, AGENT_DONE, id, &refused, sizeof refused);
    expect(two->state == RUN_DONE && two->started_us == 0, "its cell is %s",
           run_state_name(two->state));
    expect(second->state == CONTEXT_COLD && session->state == SESSION_RUNNING, "it can be tried");
    expect(third->state == CONTEXT_STARTING && fake.injected.id != id, "the next is forked");
    fake_pass(CONTEXT_START_MS - 1);
    expect(session->state == SESSION_RUNNING, "it has a minute");
    fake_pass(1001);
    expect(session->state == SESSION_ENDED && session->end == END_LOST, "end %u", session->end);
    fake_end();
}

/* A program of the session has used up the memory, or killed all processes that it could. */
TEST(a_parked_interpreter_that_was_killed_is_not_given_a_cell)
{
    begin();
    fake_interpreter_ends(0, AGENT_INTERPRETER, 9);
    struct context *context = fake_context(session, "python");
    const struct run *run = fake_cell_begins(context, "{\"code\":\"1\"}");
    expect(context->state == CONTEXT_STARTING && fake.injected.id == context->process.id,
           "another one is forked: state %u", context->state);
    fake_started(0, context->process.id);
    expect(run->state == RUN_RUNNING, "its cell is %s", run_state_name(run->state));
    fake_end();
}

TEST(a_restart_kills_the_interpreter_and_keeps_the_context)
{
    error err;
    begin();
    struct context *context = fake_context(session, "python");
    require(context_restart(context, &err) == 0, "%s", err.text);
    expect(fake_signal(0) == 0, "one that has not begun is fresh");
    const struct run *run = fake_cell_begins(context, "{\"code\":\"1\"}");
    const struct run *next = fake_cell_begins(context, "{\"code\":\"2\"}");
    require(context_restart(context, &err) == 0, "%s", err.text);
    expect(fake_signal(0) == 9 && run->state == RUN_RUNNING, "it is killed");
    fake_interpreter_ends(0, AGENT_INTERPRETER, 9);
    expect(run->state == RUN_DONE && strstr(run->context_end, "restart"), "%s", run->context_end);
    expect(context->state == CONTEXT_STARTING, "the next cell has a new one");
    fake_started(0, context->process.id);
    expect(next->state == RUN_RUNNING && context->cells == 2, "cell %u", context->cells);
    fake_end();
}

TEST(a_removed_context_goes_with_its_interpreter)
{
    begin();
    struct context *running = fake_context(session, "python");
    const struct run *run = fake_cell_begins(running, "{\"code\":\"1\"}");
    const struct run *waits = fake_cell_begins(running, "{\"code\":\"2\"}");
    context_remove(running);
    expect(waits->state == RUN_DONE && run->state == RUN_RUNNING, "what waits is refused");
    expect(fake_signal(0) == 9 && session->context_count == 1, "it is killed first");
    fake_interpreter_ends(0, AGENT_INTERPRETER, 9);
    expect(session->context_count == 0 && run->state == RUN_DONE, "%u contexts",
           session->context_count);

    struct context *starting = make("{}");
    (void) fake_cell_begins(starting, "{\"code\":\"3\"}");
    uint32_t id = fake.injected.id;
    context_remove(starting);
    expect(session->context_count == 1 && fake_signal(0) == 0, "it starts, and is killed then");
    fake_started(0, id);
    expect(fake_signal(0) == 9, "now");
    fake_interpreter_ends(0, id, 9);
    expect(session->context_count == 0 && session->operation_count == 0, "%u operations",
           session->operation_count);
    fake_end();
}

TEST(another_language_runs_in_a_driver_that_gets_files)
{
    begin();
    struct context *context = fake_context(session, "bash");
    const struct run *run = fake_cell_begins(context, "{\"code\":\"echo 1\"}");
    const struct fake_frame *start = fake_order(0, AGENT_START);
    struct agent_start order;
    require(start, "a driver is started");
    memcpy(&order, start->payload, sizeof order);
    expect(order.flags == AGENT_START_CELLS && order.arguments >= 2, "flags %u", order.flags);
    expect(session->has_parked_interpreter, "the interpreter of python stays for python");
    fake_started(0, start->id);
    const struct fake_frame *put = fake_order(0, AGENT_PUT);
    require(put, "the code is a file");
    expect(!fake_order(0, AGENT_EXECUTE), "it is there before it runs");
    fake_done(0, put->id, 0);
    expect(fake_order(0, AGENT_EXECUTE) && run->state == RUN_RUNNING, "it runs");
    fake_cell_ends(0, start->id, 0);
    expect(run->state == RUN_DONE && run->verdict.status == RUN_OK, "it is %s",
           run_state_name(run->state));
    fake_end();
}

TESTS(CASE(a_context_is_found_by_its_id_or_its_language),
      CASE(a_session_has_so_many_contexts_and_a_context_so_many_cells),
      CASE(interpreters_are_forked_one_after_the_other),
      CASE(cells_of_an_interpreter_that_does_not_start_fail),
      CASE(a_parked_interpreter_that_was_killed_is_not_given_a_cell),
      CASE(a_restart_kills_the_interpreter_and_keeps_the_context),
      CASE(a_removed_context_goes_with_its_interpreter),
      CASE(another_language_runs_in_a_driver_that_gets_files))
