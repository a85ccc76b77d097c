/* run_test.c - a run from its request to its verdict, with a sandbox of the test: the order of
 * frames to init, which of its frames are accepted, and how each end is judged. */
#include "engine/session/fake_engine_test.h"

#include <errno.h>

static struct run *run;
static unsigned changes;

static void on_changed(void *context, struct run *of)
{
    (void) context;
    (void) of;
    changes++;
}

static struct run_listener listener = { .changed = on_changed };

/* Begins a run and waits until init has got its first frames. */
static void begin(const char *text)
{
    error err;
    fake_begin();
    changes = 0;
    require(fake_submit(text, &run, &err) == 0, "%s", err.text);
    run_listen(run, &listener);
    fake_turn();
}

static void end(void)
{
    run_unlisten(run, &listener);
    fake_end();
}

static void executed(int32_t exit_code, int32_t signal)
{
    const struct agent_executed word = {
        .exit_code = exit_code, .signal = signal, .ends = 1, .count = 1
    };
    fake_says(0, AGENT_EXECUTED, ID_INTERPRETER, &word, sizeof word);
}

static void stopped(void)
{
    static const struct agent_measured figures = { .disk_bytes = 1 };
    fake_says(0, AGENT_STOPPED, 0, &figures, sizeof figures);
}

static void exited(uint32_t id, int32_t exit_code, int32_t signal)
{
    const struct agent_exited word = { .exit_code = exit_code, .signal = signal };
    fake_says(0, AGENT_EXITED, id, &word, sizeof word);
}

static void expect_end(const char *what, enum run_status status, enum run_fault fault)
{
    expect(run->state == RUN_DONE, "%s: it is %s", what, run_state_name(run->state));
    expect(run->verdict.status == status && run->verdict.fault == fault, "%s: it ends as %s by %u",
           what, outcome_status_name(run->verdict.status), run->verdict.fault);
    fake_pass(100); /* answers go first */
    expect(fake.releases == fake.builds && fake.pool.in_use == 0,
           "%s: %u of %u sandboxes are given back", what, fake.releases, fake.builds);
    expect(engine.runs.active == 0, "%s: %u runs are active", what, engine.runs.active);
}

TEST(code_is_executed_once_and_its_files_are_taken_when_nothing_runs)
{
    begin("{\"code\":\"print(1)\"}");
    expect(run->state == RUN_RUNNING, "it is %s", run_state_name(run->state));
    expect(fake.last_build.start == SPAWN_FORKED, "an interpreter is forked");
    const struct fake_frame *order = fake_order(0, AGENT_EXECUTE);
    require(order, "the code is sent");
    expect(order->id == ID_INTERPRETER, "to %u", order->id);
    expect(fake_order(0, AGENT_CONCLUDE) && fake_order(0, AGENT_END), "conclude, end of stdin");
    fake_says(0, AGENT_OUTPUT, ID_INTERPRETER, "1\n", 2);
    expect(run->collector.output[0].total == 2, "%llu bytes of stdout",
           (unsigned long long) run->collector.output[0].total);
    executed(0, 0);
    expect(run->state == RUN_STOPPING, "it is %s", run_state_name(run->state));
    stopped();
    expect(run->state == RUN_COLLECTING, "it is %s", run_state_name(run->state));
    expect(!fake_order(0, AGENT_STOP) && !fake_order(0, AGENT_COLLECT), "init is asked once");
    fake_done(0, ID_COLLECT, 0);
    expect_end("a script", RUN_OK, FAULT_NONE);
    expect(run->result.size > 0 && changes > 0, "its listeners know");
    end();
}

TEST(the_end_of_code_follows_from_inits_report)
{
    static const struct {
        int32_t exit_code, signal;
        enum run_status status;
        enum run_fault fault;
    } facts[] = {
        { 0, 0, RUN_OK, FAULT_NONE },
        { 1, 0, RUN_ERROR, FAULT_CODE },
        { 255, 0, RUN_ERROR, FAULT_CODE },
        { -1, 2, RUN_ERROR, FAULT_CODE },
    };
    for_each(fact, facts) {
        char what[32];
        (void) snprintf(what, sizeof what, "exit %d signal %d", fact->exit_code, fact->signal);
        begin("{\"code\":\"1\"}");
        executed(fact->exit_code, fact->signal);
        executed(77, 0); /* the first report counts */
        stopped();
        fake_done(0, ID_COLLECT, 0);
        expect_end(what, fact->status, fact->fault);
        expect(run->collector.exited.exit_code == fact->exit_code, "%s: exit code %d", what,
               run->collector.exited.exit_code);
        end();
    }
}

TEST(a_limit_ends_the_code_and_names_itself)
{
    static const struct {
        const char *request;
        enum limit_id limit;
        int64_t pass_ms; /* until then it runs, and not longer */
        uint64_t cpu_us;
    } facts[] = {
        { "{\"code\":\"1\",\"limits\":{\"wall_ms\":1000}}", LIMIT_wall, 1001, 0 },
        { "{\"code\":\"1\",\"limits\":{\"cpu_ms\":1000}}", LIMIT_cpu, 1000, 1000000 },
    };
    for_each(fact, facts) {
        const char *name = limit_rows[fact->limit].name;
        begin(fact->request);
        if (fact->cpu_us > 0)
            fake_use_cpu(fact->cpu_us - 1);
        fake_pass(fact->pass_ms - 1);
        expect(run->state == RUN_RUNNING, "%s: it is ended too early", name);
        if (fact->cpu_us > 0)
            fake_use_cpu(fact->cpu_us);
        fake_pass(5);
        expect(run->state == RUN_STOPPING && fake_order(0, AGENT_STOP), "%s: it is not stopped",
               name);
        executed(0, 0); /* too late: it was ended while it ran */
        stopped();
        fake_done(0, ID_COLLECT, 0);
        expect(run->evidence.stopped_for == fact->limit && run->evidence.hits[fact->limit] == 1,
               "%s: %llu hits", name, (unsigned long long) run->evidence.hits[fact->limit]);
        expect(run->state == RUN_DONE, "%s: it is %s", name, run_state_name(run->state));
        end();
    }
}

TEST(processor_time_counts_at_the_end_too)
{
    static const struct {
        uint64_t cpu_us;
        int32_t exit_code;
        enum run_status status;
        uint64_t hits;
    } facts[] = {
        { 1000, 0, RUN_OK, 0 },
        { 1001, 0, RUN_OK, 1 }, /* it ended before a check */
        { 1001, 1, RUN_LIMIT, 1 },
        { 1000, 1, RUN_ERROR, 0 },
    };
    for_each(fact, facts) {
        begin("{\"code\":\"1\",\"limits\":{\"cpu_ms\":1}}");
        fake_use_cpu(fact->cpu_us);
        executed(fact->exit_code, 0);
        stopped();
        fake_done(0, ID_COLLECT, 0);
        uint64_t hits = run->evidence.hits[LIMIT_cpu];
        expect(run->state == RUN_DONE && run->verdict.status == fact->status && hits == fact->hits,
               "%llu us, exit %d: it is %s with %llu hits", (unsigned long long) fact->cpu_us,
               fact->exit_code, outcome_status_name(run->verdict.status),
               (unsigned long long) hits);
        end();
    }
}

TEST(output_without_end_is_stopped)
{
    static char line[AGENT_PAYLOAD_MAX];
    begin("{\"code\":\"1\",\"limits\":{\"output_bytes\":1024}}");
    memset(line, 'x', sizeof line);
    for (int i = 0; i < 4096 && run->state == RUN_RUNNING; i++)
        fake_says(0, AGENT_OUTPUT, ID_INTERPRETER, line, sizeof line);
    expect(run->state == RUN_STOPPING && run->evidence.stopped_for == LIMIT_output, "it is %s",
           run_state_name(run->state));
    exited(ID_INTERPRETER, -1, 9);
    stopped();
    fake_done(0, ID_COLLECT, 0);
    expect_end("a flood", RUN_LIMIT, FAULT_LIMIT);
    expect(run->verdict.limit == LIMIT_output, "limit %u", run->verdict.limit);
    end();
}

TEST(a_program_that_does_not_stop_is_killed_with_its_sandbox)
{
    begin("{\"code\":\"1\",\"limits\":{\"wall_ms\":1000}}");
    fake_pass(1001);
    require(run->state == RUN_STOPPING, "it is %s", run_state_name(run->state));
    fake_pass(999);
    expect(run->state == RUN_STOPPING, "init has a second");
    fake_pass(3100); /* its processes are not counted: only init's frame is awaited */
    expect_end("no word of init", RUN_LIMIT, FAULT_LIMIT);
    expect(run->files_are_lost && run->evidence.lost, "its files are lost");
    end();
}

TEST(cancelling_ends_a_run_in_every_state)
{
    begin("{\"code\":\"1\"}");
    run_cancel(run);
    run_cancel(run); /* a second call changes nothing */
    expect(run->state == RUN_STOPPING && fake_order(0, AGENT_STOP), "it is stopped");
    expect(!fake_order(0, AGENT_STOP), "it is stopped twice");
    exited(ID_INTERPRETER, -1, 9);
    stopped();
    fake_done(0, ID_COLLECT, 0);
    expect_end("running", RUN_CANCELLED, FAULT_CALLER);
    end();

    fake_begin();
    error err;
    fake.builds_wait = true;
    require(fake_submit("{\"code\":\"1\"}", &run, &err) == 0, "%s", err.text);
    run_listen(run, &listener);
    fake_turn();
    expect(run->state == RUN_BUILDING, "it is %s", run_state_name(run->state));
    expect(deadline_left_ms(run->state_ends) > SPAWN_BUILD_MS + SPAWN_WARM_MS,
           "glovebox-spawner gives up first");
    run_cancel(run);
    fake_answer_build(&fake.last_build); /* the sandbox comes, and nobody wants it */
    fake_turn();
    expect_end("building", RUN_CANCELLED, FAULT_CALLER);
    end();
}

/* Frames that init may not send; the run is lost with its sandbox. */
static void say_stopped(void)
{
    stopped();
}

static void say_two_hellos(void)
{
    fake_says(0, AGENT_HELLO, 0, &(struct agent_hello){ .version = AGENT_VERSION },
              sizeof(struct agent_hello));
}

static void say_file(void)
{
    fake_says(0, AGENT_END, ID_COLLECT, NULL, 0);
}

static void say_order(void)
{
    fake_says(0, AGENT_EXECUTE, ID_INTERPRETER, "x", 1);
}

static void hang_up(void)
{
    (void) shutdown(fake.slots[0].stream, SHUT_RDWR);
    fake_turn();
}

static void lose_init(void)
{
    const struct spawn_slot name = { 0, 1 };
    error err;
    require(packet_send(fake.spawner_end, SPAWN_LOST, &name, sizeof name, NULL, 0, &err) == 0, "%s",
            err.text);
    fake_turn();
}

TEST(a_sandbox_that_breaks_or_misbehaves_loses_its_run)
{
    static const struct {
        const char *what;
        void (*happens)(void);
    } facts[] = {
        { "STOPPED while the code runs", say_stopped },
        { "a second hello", say_two_hellos },
        { "a file while the code runs", say_file },
        { "an order in place of an answer", say_order },
        { "the end of the stream", hang_up },
        { "the end of init", lose_init },
    };
    for_each(fact, facts) {
        begin("{\"code\":\"1\"}");
        fact->happens();
        expect_end(fact->what, RUN_LOST, FAULT_GLOVEBOX);
        expect(run->fault.text[0] && run->files_are_lost, "%s: no cause", fact->what);
        end();
    }
}

TEST(an_interpreter_that_was_killed_before_its_code_came_is_named)
{
    static const struct agent_done refused = { .os = ENOENT };
    for (int order = 0; order < 2; order++) {
        begin("{\"code\":\"1\"}");
        if (order == 1)
            exited(ID_INTERPRETER, -1, 9);
        fake_says(0, AGENT_DONE, ID_INTERPRETER, &refused, sizeof refused);
        expect_end("the code is refused", RUN_LOST, FAULT_GLOVEBOX);
        expect(run->fault.code == ERR_UNAVAILABLE, "order %d: '%s'", order, run->fault.text);
        end();
    }
}

TEST(an_end_of_an_older_sandbox_in_the_same_slot_is_not_this_ones)
{
    const struct spawn_slot name = { 0, 7 };
    error err;
    begin("{\"code\":\"1\"}");
    require(packet_send(fake.spawner_end, SPAWN_LOST, &name, sizeof name, NULL, 0, &err) == 0, "%s",
            err.text);
    fake_turn();
    expect(run->state == RUN_RUNNING, "it is %s", run_state_name(run->state));
    end();
}

TEST(a_sandbox_that_cannot_be_built_loses_the_run_with_the_spawners_words)
{
    error err;
    fake_begin();
    fake.build_failure = "no namespace";
    require(fake_submit("{\"code\":\"1\"}", &run, &err) == 0, "%s", err.text);
    run_listen(run, &listener);
    fake_turn();
    expect(run->state == RUN_DONE && run->verdict.status == RUN_LOST, "it is %s",
           run_state_name(run->state));
    expect(strcmp(run->fault.text, "build a sandbox: no namespace") == 0, "%s", run->fault.text);
    expect(!run->files_are_lost, "it had no files yet");
    expect(fake.pool.in_use == 0, "%u slots are in use", fake.pool.in_use);
    end();
}

TEST(inputs_are_all_in_before_a_program_starts)
{
    begin("{\"command\":[\"cat\",\"a\"],\"files\":[{\"path\":\"a\",\"content\":\"A\"}]}");
    expect(run->state == RUN_LOADING, "it is %s", run_state_name(run->state));
    const struct fake_frame *put = fake_order(0, AGENT_PUT);
    require(put && fake_order(0, AGENT_DATA) && fake_order(0, AGENT_END), "the file is sent");
    require(fake_order(0, AGENT_SEAL), "the inputs are sealed");
    expect(memcmp(put->payload + sizeof(struct agent_put), "a", 1) == 0, "its path");
    fake_done(0, put->id, 0);
    expect(run->state == RUN_LOADING && !fake_order(0, AGENT_START), "half of them is not all");
    fake_done(0, ID_SEAL, 0);
    const struct fake_frame *start = fake_order(0, AGENT_START);
    require(start, "it starts");
    expect(start->id == ID_PROGRAM && run->state == RUN_RUNNING, "program %u", start->id);
    fake_says(0, AGENT_STARTED, ID_PROGRAM, &(struct agent_started){ .pid = 3 },
              sizeof(struct agent_started));
    exited(ID_PROGRAM, 3, 0);
    expect(fake_order(0, AGENT_MEASURE) && fake_order(0, AGENT_COLLECT), "its files are asked for");
    fake_says(0, AGENT_MEASURED, ID_COLLECT, &(struct agent_measured){ .disk_bytes = 1 },
              sizeof(struct agent_measured));
    fake_done(0, ID_COLLECT, 0);
    expect_end("a command", RUN_ERROR, FAULT_CODE);
    end();
}

TEST(an_input_that_cannot_be_written_ends_the_run)
{
    static const struct {
        int os;
        enum run_status status;
        enum run_fault fault;
    } facts[] = { { ENOSPC, RUN_LIMIT, FAULT_LIMIT },
                  { EDQUOT, RUN_LIMIT, FAULT_LIMIT },
                  { EIO, RUN_LOST, FAULT_GLOVEBOX } };
    for_each(fact, facts) {
        begin("{\"command\":[\"cat\"],\"files\":[{\"path\":\"a\",\"content\":\"A\"}]}");
        fake_done(0, ID_FIRST_FILE, fact->os);
        fake_done(0, ID_SEAL, 0);
        expect_end(strerrordesc_np(fact->os), fact->status, fact->fault);
        end();
    }
}

TEST(a_program_that_cannot_be_executed_exits_as_in_a_shell)
{
    static const struct {
        int os, exit_code;
    } facts[] = { { ENOENT, 127 }, { ENOTDIR, 127 }, { EACCES, 126 }, { ENOEXEC, 126 } };
    for_each(fact, facts) {
        const struct agent_done refused = { .os = fact->os, .is_of_the_program = 1 };
        begin("{\"command\":[\"nothing\"]}");
        fake_says(0, AGENT_DONE, ID_PROGRAM, &refused, sizeof refused);
        fake_says(0, AGENT_MEASURED, ID_COLLECT, &(struct agent_measured){ .disk_bytes = 1 },
                  sizeof(struct agent_measured));
        fake_done(0, ID_COLLECT, 0);
        expect_end(strerrordesc_np(fact->os), RUN_ERROR, FAULT_CODE);
        expect(run->collector.exited.exit_code == fact->exit_code, "%s: exit code %d",
               strerrordesc_np(fact->os), run->collector.exited.exit_code);
        expect(run->collector.output[1].total > 0, "%s: stderr is empty",
               strerrordesc_np(fact->os));
        end();
    }
}

TEST(runs_wait_for_a_slot_and_begin_in_order)
{
    enum { RUNS = FAKE_SLOTS + 2 };
    struct run *runs[RUNS];
    struct run_listener listeners[RUNS];
    unsigned under_way = 0;
    error err;
    fake_begin();
    for (unsigned i = 0; i < RUNS; i++) {
        listeners[i] = listener;
        require(fake_submit("{\"code\":\"1\"}", &runs[i], &err) == 0, "%s", err.text);
        run_listen(runs[i], &listeners[i]);
        fake_turn();
        under_way += runs[i]->state == RUN_RUNNING;
    }
    expect(under_way == FAKE_SLOTS, "%u run in %d slots", under_way, FAKE_SLOTS);
    expect(runs[FAKE_SLOTS]->state == RUN_QUEUED && engine.runs.queued == 2, "%u wait",
           engine.runs.queued);
    executed(0, 0);
    stopped();
    fake_done(0, ID_COLLECT, 0);
    expect(runs[0]->state == RUN_DONE, "it is %s", run_state_name(runs[0]->state));
    expect(runs[FAKE_SLOTS]->state == RUN_RUNNING, "the first that waits begins");
    expect(runs[FAKE_SLOTS + 1]->state == RUN_QUEUED, "the second waits");
    expect(fake.slots[0].generation == 2, "its sandbox is a new one");
    fake_pass(60000); /* the bound of a queue */
    expect(runs[FAKE_SLOTS + 1]->state == RUN_DONE && runs[FAKE_SLOTS + 1]->fault.code == ERR_BUSY,
           "who waits too long is told so: %s", runs[FAKE_SLOTS + 1]->fault.text);
    for (unsigned i = 0; i < RUNS; i++)
        run_unlisten(runs[i], &listeners[i]);
    fake_end();
}

TESTS(CASE(code_is_executed_once_and_its_files_are_taken_when_nothing_runs),
      CASE(the_end_of_code_follows_from_inits_report), CASE(a_limit_ends_the_code_and_names_itself),
      CASE(processor_time_counts_at_the_end_too), CASE(output_without_end_is_stopped),
      CASE(a_program_that_does_not_stop_is_killed_with_its_sandbox),
      CASE(cancelling_ends_a_run_in_every_state),
      CASE(a_sandbox_that_breaks_or_misbehaves_loses_its_run),
      CASE(an_interpreter_that_was_killed_before_its_code_came_is_named),
      CASE(an_end_of_an_older_sandbox_in_the_same_slot_is_not_this_ones),
      CASE(a_sandbox_that_cannot_be_built_loses_the_run_with_the_spawners_words),
      CASE(inputs_are_all_in_before_a_program_starts),
      CASE(an_input_that_cannot_be_written_ends_the_run),
      CASE(a_program_that_cannot_be_executed_exits_as_in_a_shell),
      CASE(runs_wait_for_a_slot_and_begin_in_order))
