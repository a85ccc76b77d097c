/* cell_test.c - cells in a session's context: their order, their ends, and the state of the
 * interpreter after one was interrupted. */
#include "engine/session/fake_engine_test.h"

#include "engine/session/contexts.h"
#include "engine/session/session_internal.h"

static struct session *session;
static struct context *context;

static void begin(void)
{
    fake_begin();
    session = fake_session("{\"policy\":\"data\"}");
    require(session->state == SESSION_RUNNING, "it is in state %u", session->state);
    context = fake_context(session, "python");
}

static void expect_end(const struct run *run, const char *what, enum run_status status)
{
    expect(run->state == RUN_DONE && run->verdict.status == status, "%s: it is %s, %s", what,
           run_state_name(run->state), outcome_status_name(run->verdict.status));
    expect(!run->cell->context, "%s: it still holds its context", what);
}

TEST(cells_run_one_by_one_in_the_interpreter_that_is_there)
{
    begin();
    struct run *first = fake_cell_begins(context, "{\"code\":\"a = 1\"}");
    struct run *second = fake_cell_begins(context, "{\"code\":\"a\"}");
    expect(first->state == RUN_RUNNING && second->state == RUN_QUEUED, "%s, %s",
           run_state_name(first->state), run_state_name(second->state));
    expect(fake_order(0, AGENT_EXECUTE) && !fake_order(0, AGENT_EXECUTE), "one is sent at a time");
    expect(fake.injected.id == 0, "no interpreter is forked");
    fake_cell_ends(0, AGENT_INTERPRETER, 0);
    expect_end(first, "the first", RUN_OK);
    expect(second->state == RUN_RUNNING && fake_order(0, AGENT_EXECUTE), "the second follows");
    fake_cell_ends(0, AGENT_INTERPRETER, 1);
    expect_end(second, "one that raises", RUN_ERROR);
    expect(first->cell->number == 1 && second->cell->number == 2, "cells %u and %u",
           first->cell->number, second->cell->number);
    expect(context->state == CONTEXT_IDLE && !second->context_end, "the context stays");
    expect(session->cells == 2 && session->holds == 0, "%llu cells, %u holds",
           (unsigned long long) session->cells, session->holds);
    fake_end();
}

TEST(a_cell_that_heeds_the_interrupt_keeps_its_context)
{
    begin();
    struct run *run = fake_cell_begins(context, "{\"code\":\"1\",\"limits\":{\"wall_ms\":1000}}");
    fake_pass(999);
    expect(run->state == RUN_RUNNING && fake_signal(0) == 0, "it is stopped too early");
    fake_pass(2);
    expect(run->state == RUN_STOPPING && fake_signal(0) == 2, "it is interrupted");
    fake_pass(250);
    expect(fake_signal(0) == 2, "the first cell may not have listened: once more");
    fake_cell_ends(0, AGENT_INTERPRETER, 1);
    expect_end(run, "wall", RUN_LIMIT);
    expect(run->verdict.limit == LIMIT_wall && !run->context_end, "limit %u", run->verdict.limit);
    expect(context->state == CONTEXT_IDLE, "the context is in state %u", context->state);
    fake_end();
}

TEST(a_cell_that_heeds_nothing_loses_its_interpreter_and_then_its_session)
{
    begin();
    struct run *run = fake_cell_begins(context, "{\"code\":\"1\",\"limits\":{\"wall_ms\":1000}}");
    struct run *next = fake_cell_begins(context, "{\"code\":\"2\"}");
    fake_pass(1001);
    fake_pass(1999);
    expect(fake_signal(0) == 2, "it has two seconds");
    fake_pass(2);
    expect(fake_signal(0) == 9 && context->is_ending, "its interpreter is killed");
    fake_interpreter_ends(0, AGENT_INTERPRETER, 9);
    expect_end(run, "killed", RUN_LIMIT);
    expect(run->context_end && strstr(run->context_end, "interrupt"), "%s", run->context_end);
    expect(fake.injected.id != 0 && context->state == CONTEXT_STARTING, "a fresh one is forked");
    fake_started(0, fake.injected.id);
    expect(next->state == RUN_RUNNING, "the next cell is %s", run_state_name(next->state));

    run_cancel(next);
    fake_pass(2001);
    fake_pass(4999);
    expect(session->state == SESSION_RUNNING, "a killed interpreter has five seconds");
    fake_pass(2);
    expect(session->state == SESSION_ENDED && session->end == END_LOST, "end %u", session->end);
    expect_end(next, "with its session", RUN_CANCELLED);
    fake_end();
}

TEST(a_cell_that_waits_can_be_cancelled)
{
    begin();
    struct run *runs[3];
    for (unsigned i = 0; i < 3; i++)
        runs[i] = fake_cell_begins(context, "{\"code\":\"1\"}");
    run_cancel(runs[1]);
    expect_end(runs[1], "in the queue", RUN_CANCELLED);
    expect(runs[0]->state == RUN_RUNNING && context->queued == 1, "%u wait", context->queued);
    expect(fake_signal(0) == 0, "the one that runs is left alone");
    fake_cell_ends(0, AGENT_INTERPRETER, 0);
    expect(runs[2]->state == RUN_RUNNING, "the last is %s", run_state_name(runs[2]->state));
    fake_end();
}

TEST(the_end_of_a_session_says_whose_doing_the_end_of_its_cells_is)
{
    static const struct {
        enum session_end end;
        enum run_status status;
        enum run_fault fault;
    } facts[] = { { END_DELETED, RUN_CANCELLED, FAULT_CALLER },
                  { END_AGE, RUN_CANCELLED, FAULT_CALLER },
                  { END_LOST, RUN_LOST, FAULT_GLOVEBOX } };
    for_each(fact, facts) {
        begin();
        error why;
        const struct run *runs[2];
        for (unsigned i = 0; i < 2; i++)
            runs[i] = fake_cell_begins(context, "{\"code\":\"1\"}");
        (void) fail(&why, ERR_SYSTEM, "of the test");
        session_end(session, fact->end, &why);
        expect_end(runs[0], "the one that ran", fact->status);
        expect_end(runs[1], "the one that waited", fact->status);
        expect(runs[0]->verdict.fault == fact->fault, "end %u: fault %u", fact->end,
               runs[0]->verdict.fault);
        fake_end();
    }
}

TEST(an_interpreter_that_ends_takes_its_cell_with_it)
{
    static const struct {
        int32_t signal;
        const char *says;
    } facts[] = { { 0, "it ended by itself" },
                  { 11, "a signal ended it" },
                  { 9, "it was killed" } };
    for_each(fact, facts) {
        begin();
        struct run *run = fake_cell_begins(context, "{\"code\":\"1\"}");
        fake_interpreter_ends(0, AGENT_INTERPRETER, fact->signal);
        expect_end(run, fact->says, RUN_ERROR);
        expect(run->context_end && strcmp(run->context_end, fact->says) == 0, "%s",
               run->context_end);
        expect(context->state == CONTEXT_COLD && session->state == SESSION_RUNNING,
               "the session lives");
        fake_end();
    }
}

TEST(what_is_printed_between_cells_goes_to_the_next_one)
{
    begin();
    (void) fake_cell_begins(context, "{\"code\":\"1\"}");
    fake_cell_ends(0, AGENT_INTERPRETER, 0);
    fake_says(0, AGENT_OUTPUT, AGENT_INTERPRETER, "late", 4);
    const struct run *run = fake_cell_begins(context, "{\"code\":\"2\"}");
    expect(run->collector.output[0].total == 4, "%llu bytes",
           (unsigned long long) run->collector.output[0].total);
    expect(context->between.size == 0, "it goes to one cell only");
    fake_end();
}

TEST(a_cell_may_ask_for_its_own_limits_only)
{
    static const struct {
        const char *text;
        bool is_granted;
    } facts[] = {
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":1000,\"cpu_ms\":1000,\"output_bytes\":100}}",
          true },
        { "{\"code\":\"1\",\"limits\":{\"memory_bytes\":67108864}}", false },
        { "{\"code\":\"1\",\"limits\":{\"processes\":1}}", false },
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":7200000}}", false },
    };
    for_each(fact, facts) {
        struct run *run = NULL;
        error err = { 0 };
        begin();
        int result = fake_cell(context, fact->text, &run, &err);
        expect((result == 0) == fact->is_granted, "%s: %s", fact->text, err.text);
        expect(fact->is_granted || err.code == ERR_LIMIT, "%s: code %d", fact->text, err.code);
        expect(context->queued == 0, "%s: %u wait", fact->text, context->queued);
        fake_end();
    }
}

TEST(an_early_interrupt_is_repeated)
{
    static const struct {
        int64_t after_ms; /* the cell is not the first of its interpreter */
        bool is_repeated;
    } facts[] = { { 0, true }, { 99, true }, { 100, false }, { 5000, false } };
    for_each(fact, facts) {
        begin();
        (void) fake_cell_begins(context, "{\"code\":\"1\"}");
        fake_cell_ends(0, AGENT_INTERPRETER, 0);
        struct run *run = fake_cell_begins(context, "{\"code\":\"2\"}");
        fake_pass(fact->after_ms);
        run_cancel(run);
        fake_turn();
        expect(run->state == RUN_STOPPING && fake_signal(0) == 2, "after %d ms: it is interrupted",
               (int) fact->after_ms);
        fake_pass(250);
        expect((fake_signal(0) == 2) == fact->is_repeated, "after %d ms: once more",
               (int) fact->after_ms);
        fake_cell_ends(0, AGENT_INTERPRETER, 1);
        expect(run->ended_us == fake.clock_us, "after %d ms: its end is when the code ended",
               (int) fact->after_ms);
        expect_end(run, "an interrupted one", RUN_CANCELLED);
        fake_end();
    }
}

TEST(a_cell_keeps_a_copy_of_the_rules_of_its_session)
{
    static struct network_policy narrowed;
    struct run *run = NULL;
    error err;
    begin();
    session->plan.narrowed = &narrowed;
    require(fake_cell(context, "{\"code\":\"1\"}", &run, &err) == 0, "%s", err.text);
    expect(run->plan.narrowed && run->plan.narrowed != &narrowed &&
               run->plan.route == run->plan.narrowed,
           "the session may end before the receipt is written");
    session->plan.narrowed = NULL;
    fake_turn();
    fake_end();
}

TESTS(CASE(cells_run_one_by_one_in_the_interpreter_that_is_there),
      CASE(a_cell_that_heeds_the_interrupt_keeps_its_context),
      CASE(a_cell_that_heeds_nothing_loses_its_interpreter_and_then_its_session),
      CASE(a_cell_that_waits_can_be_cancelled),
      CASE(the_end_of_a_session_says_whose_doing_the_end_of_its_cells_is),
      CASE(an_interpreter_that_ends_takes_its_cell_with_it),
      CASE(what_is_printed_between_cells_goes_to_the_next_one),
      CASE(a_cell_may_ask_for_its_own_limits_only), CASE(an_early_interrupt_is_repeated),
      CASE(a_cell_keeps_a_copy_of_the_rules_of_its_session))
