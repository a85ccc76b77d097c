/* branch_test.c - a branch: the frames to both sandboxes, when it is answered, and which failure
 * ends which of the two. */
#include "engine/session/branch.h"

#include "engine/session/contexts.h"
#include "engine/session/fake_engine_test.h"
#include "engine/session/session_internal.h"

#include <errno.h>

enum { PARENT, CHILD }; /* slots */
enum { FILES = 9 };     /* the order of a restore that loads the files */

static struct session *parent, *child;
static struct context *context;
static uint32_t saving; /* the operation that packs the parent's files */

static int branch_with(const char *text, unsigned processes, error *err)
{
    struct context *chosen = NULL;
    require(branch_choose(parent, NULL, &chosen, err) == 0, "%s", err->text);
    const struct session_source source = { .session = parent,
                                           .context = chosen,
                                           .processes = processes };
    struct json_object *overrides = fake_json(text);
    int result = session_branch(&source, &engine.accounts.local, overrides, &child, err);
    (void) json_object_put(overrides);
    return result;
}

static int branch(const char *name, error *err)
{
    struct context *chosen = NULL;
    return branch_choose(parent, name, &chosen, err) < 0 ? -1 : branch_with("{}", 0, err);
}

/* A parent with a context in which one cell has run. */
static void begin(void)
{
    fake_begin();
    child = NULL;
    parent = fake_session("{\"policy\":\"data\",\"metadata\":{\"a\":\"b\"}}");
    context = fake_context(parent, "python");
    (void) fake_cell_begins(context, "{\"code\":\"a = 1\"}");
    fake_cell_ends(PARENT, AGENT_INTERPRETER, 0);
}

static void begin_branch(void)
{
    error err;
    begin();
    require(branch(NULL, &err) == 0, "%s", err.text);
    const struct fake_frame *image = fake_order(PARENT, AGENT_IMAGE);
    require(image && image->fd >= 0 && image->id == AGENT_INTERPRETER, "its image is asked for");
    const struct fake_frame *save = fake_order(PARENT, AGENT_SAVE);
    require(save && save->fd >= 0, "its files are asked for");
    saving = save->id;
    const struct fake_frame *load = fake_order(CHILD, AGENT_LOAD);
    require(load && load->fd >= 0 && load->id == FILES, "they are awaited");
}

static void forked(int32_t exit_code)
{
    fake_cell_ends(PARENT, AGENT_INTERPRETER, exit_code);
}

TEST(a_branch_is_answered_for_when_its_parent_is_copied_and_runs_when_it_is_filled)
{
    begin_branch();
    struct run *waits = fake_cell_begins(context, "{\"code\":\"2\"}");
    expect(waits->state == RUN_QUEUED, "a cell waits for the copy");
    forked(0);
    expect(!branch_is_fixed(child) && waits->state == RUN_QUEUED, "half of it is not all");
    fake_done(PARENT, saving, 0);
    expect(branch_is_fixed(child) && waits->state == RUN_RUNNING, "the parent goes on");
    expect(session_holds(parent) & SESSION_MUST_LIVE, "the parent has to stay");
    expect(child->state == SESSION_STARTING, "its sandbox is not filled: %u", child->state);
    fake_done(CHILD, FILES, 0);
    const struct fake_frame *start = fake_order(CHILD, AGENT_START);
    struct agent_start order;
    require(start && start->id == FILL_INTERPRETER && start->fd >= 0, "its interpreter starts");
    memcpy(&order, start->payload, sizeof order);
    expect(order.flags == AGENT_START_RESTORE, "flags %u", order.flags);
    fake_started(CHILD, FILL_INTERPRETER);
    fake_cell_ends(CHILD, FILL_INTERPRETER, 0);
    expect(child->state == SESSION_RUNNING && !branch_is_fixed(child), "state %u", child->state);
    expect(session_holds(parent) == 0, "the parent is free");
    expect(strcmp(child->parent, parent->id) == 0 && strcmp(child->parent_context, "python") == 0,
           "it knows where it comes from");
    struct json_object *value = NULL;
    expect(json_object_object_get_ex(child->metadata, "a", &value), "it has the metadata");
    const struct run *run = fake_cell_begins(fake_context(child, "python"), "{\"code\":\"a\"}");
    const struct fake_frame *execute = fake_order(CHILD, AGENT_EXECUTE);
    expect(execute && execute->id == FILL_INTERPRETER && run->cell->number == 2,
           "its cells go on where the parent's were");
    fake_end();
}

TEST(what_cannot_be_copied_is_refused)
{
    error err = { 0 };
    begin();
    (void) fake_context(parent, "bash");
    expect(branch("bash", &err) < 0 && err.code == ERR_BAD_REQUEST, "a driver: %s", err.text);
    expect(branch("ctx_7", &err) < 0 && err.code == ERR_NOT_FOUND, "an unknown one: %s", err.text);
    struct run *run = fake_cell_begins(context, "{\"code\":\"1\"}");
    expect(branch(NULL, &err) < 0 && err.code == ERR_CONFLICT, "a cell runs: %s", err.text);
    fake_cell_ends(PARENT, AGENT_INTERPRETER, 0);
    expect(run->state == RUN_DONE, "it has ended");
    parent->delete_pending = true;
    expect(branch(NULL, &err) < 0 && err.code == ERR_CONFLICT, "it is deleted: %s", err.text);
    parent->delete_pending = false;
    require(session_pause(parent, false, &err) == 0, "%s", err.text);
    expect(branch(NULL, &err) < 0 && err.code == ERR_CONFLICT, "it is paused: %s", err.text);
    expect(branch("bash", &err) < 0 && err.code == ERR_CONFLICT, "whichever it is: %s", err.text);
    require(session_resume(parent, &err) == 0, "%s", err.text);
    engine.python.digest = "sha256:0";
    expect(engine.sessions.alive == 1 && fake.builds == 1, "nothing was built for them");
    fake_end();
}

static void image_fails(void)
{
    forked(EAGAIN);
}

static void files_fail(void)
{
    fake_done(PARENT, saving, EIO);
}

static void loading_fails(void)
{
    fake_done(CHILD, FILES, ENOSPC);
}

static void interpreter_fails(void)
{
    forked(0);
    fake_done(PARENT, saving, 0);
    fake_done(CHILD, FILES, 0);
    fake_started(CHILD, FILL_INTERPRETER);
    fake_interpreter_ends(CHILD, FILL_INTERPRETER, 11);
}

static void sandbox_breaks(void)
{
    (void) shutdown(fake.slots[CHILD].stream, SHUT_RDWR);
    fake_turn();
}

static void copy_hangs(void)
{
    for (int i = 0; i < 12; i++)
        fake_pass(1000);
}

TEST(a_branch_that_fails_leaves_its_parent_as_it_was)
{
    static const struct {
        const char *what;
        void (*happens)(void);
        const char *says;
    } facts[] = {
        { "the interpreter does not fork", image_fails, "could not be copied" },
        { "the files are not read", files_fail, "the files could not be copied" },
        { "the files are not written", loading_fails, "the files could not be written" },
        { "the copy crashes", interpreter_fails, "signal 11" },
        { "the sandbox breaks", sandbox_breaks, "branch of" },
        { "nothing comes", copy_hangs, "10 s" },
    };
    for_each(fact, facts) {
        begin_branch();
        fact->happens();
        expect(child->state == SESSION_ENDED && child->end == END_FAILED, "%s: state %u, end %u",
               fact->what, child->state, child->end);
        expect(strstr(child->why.text, fact->says), "%s: %s", fact->what, child->why.text);
        expect(parent->state == SESSION_RUNNING && engine.sessions.branching == 0,
               "%s: the parent is in state %u", fact->what, parent->state);
        expect(session_holds(parent) == 0, "%s: the parent is held", fact->what);
        fake_pass(100);
        expect(fake.slots[CHILD].stream < 0, "%s: its sandbox stays", fact->what);
        fake_end();
    }
}

TEST(a_parent_that_ends_before_it_is_copied_ends_its_branch)
{
    error why;
    begin_branch();
    (void) fail(&why, ERR_CONFLICT, "it was deleted");
    session_end(parent, END_DELETED, &why);
    fake_turn();
    expect(child->state == SESSION_ENDED && child->end == END_FAILED, "state %u", child->state);
    fake_pass(100);
    expect(fake.pool.in_use == 0, "%u slots are in use", fake.pool.in_use);
    fake_end();
}

TEST(a_template_that_was_built_again_has_no_branch)
{
    error err = { 0 };
    static struct template newer;
    begin();
    newer = engine.python;
    newer.digest = "sha256:1";
    engine.templates.list[0] = &newer;
    expect(branch(NULL, &err) < 0 && err.code == ERR_CONFLICT, "%s", err.text);
    expect(engine.sessions.branching == 0 && engine.sessions.alive == 1, "nothing is left");
    fake_end();
}

TEST(a_branch_changes_what_belongs_to_it_alone)
{
    static const struct {
        const char *overrides;
        bool is_granted;
    } facts[] = {
        { "{\"idle_seconds\":5,\"metadata\":{}}", true },
        { "{\"policy\":\"minimal\"}", false },
        { "{\"nonsense\":1}", false },
        { "{\"idle_seconds\":-1}", false },
    };
    for_each(fact, facts) {
        error err = { 0 };
        begin();
        int result = branch_with(fact->overrides, 0, &err);
        expect((result == 0) == fact->is_granted, "%s: %s", fact->overrides, err.text);
        expect(fact->is_granted ? child->idle_ms == 5000 : err.code == ERR_BAD_REQUEST,
               "%s: code %d", fact->overrides, err.code);
        fake_end();
    }
}

TEST(a_branch_lists_what_it_does_not_carry)
{
    static const char *const facts[] = { "", "1 process", "2 processes" };
    for (unsigned processes = 0; processes < COUNT_OF(facts); processes++) {
        error err;
        begin();
        require(branch_with("{}", processes, &err) == 0, "%s", err.text);
        bytes_add(&child->not_carried, "", 1);
        expect(strcmp(child->not_carried.data, facts[processes]) == 0, "%u processes: '%s'",
               processes, child->not_carried.data);
        fake_end();
    }
}

TEST(a_session_with_as_many_contexts_as_it_may_have_has_none_to_copy)
{
    struct context *chosen = NULL;
    error err = { 0 };
    fake_begin();
    parent = fake_session("{}");
    for (int i = 0; i < CONTEXTS_MAX; i++) {
        struct context_request request;
        require(context_request_read(fake_json("{\"language\":\"bash\"}"), false, &request, &err) ==
                        0 &&
                    context_create(parent, &request, &context, &err) == 0,
                "%s", err.text);
    }
    expect(branch_choose(parent, NULL, &chosen, &err) < 0 && err.code == ERR_BUSY, "%s", err.text);
    fake_end();
}

TESTS(CASE(a_branch_is_answered_for_when_its_parent_is_copied_and_runs_when_it_is_filled),
      CASE(what_cannot_be_copied_is_refused), CASE(a_branch_that_fails_leaves_its_parent_as_it_was),
      CASE(a_parent_that_ends_before_it_is_copied_ends_its_branch),
      CASE(a_template_that_was_built_again_has_no_branch),
      CASE(a_branch_changes_what_belongs_to_it_alone), CASE(a_branch_lists_what_it_does_not_carry),
      CASE(a_session_with_as_many_contexts_as_it_may_have_has_none_to_copy))
