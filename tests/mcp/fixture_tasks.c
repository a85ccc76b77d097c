/* fixture_tasks.c - tools that are answered with a task, where the client knows of tasks: they take
 * their time, fail, or ask while they are under way. Nothing of them is kept but this table. */
#include "base/clock.h"
#include "base/table.h"
#include "fixtures.h"
#include "json/writer.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

enum { TASKS = 64, RANDOM_SIZE = 16, A_MOMENT_MS = 300, SECONDS_MAX = 3600 };

#define TEXT_RESULT(text) "\"content\":[{\"type\":\"text\",\"text\":\"" text "\"}]"
static const char question[] =
    "{\"method\":\"elicitation/create\",\"params\":{\"mode\":\"form\",\"message\":\"Go on?\","
    "\"requestedSchema\":{\"type\":\"object\",\"properties\":{\"confirm\":{\"type\":\"boolean\"}},"
    "\"required\":[\"confirm\"]}}}";

static const struct job {
    const char *tool;
    bool needs_tasks;         /* it has no other way */
    const char *questions[2]; /* names; NULL: none */
    enum mcp_task_status end;
    const char *outcome; /* of the task at its end; NULL: who it is for */
} jobs[] = {
    { "slow_compute",
      false,
      { NULL },
      TASK_COMPLETED,
      "{" TEXT_RESULT("computed") ",\"isError\":false}" },
    { "failing_job",
      true,
      { NULL },
      TASK_COMPLETED,
      "{" TEXT_RESULT("it failed") ",\"isError\":true}" },
    { "protocol_error_job",
      true,
      { NULL },
      TASK_FAILED,
      "{\"code\":-32603,\"message\":\"it broke\"}" },
    { "confirm_delete",
      true,
      { "confirm" },
      TASK_COMPLETED,
      "{" TEXT_RESULT("deleted") ",\"isError\":false}" },
    { "test_tool_with_task", true, { NULL }, TASK_COMPLETED, NULL },
    { "multi_input",
      true,
      { "first", "second" },
      TASK_COMPLETED,
      "{" TEXT_RESULT("both were given") ",\"isError\":false}" },
};

static struct kept {
    char id[2 * RANDOM_SIZE + 1]; /* "": none */
    const struct job *job;
    int64_t created_ms, ends_ms;
    bool is_answered[2], is_cancelled;
    char name[32]; /* of who it is for */
} tasks[TASKS];
static size_t made;

static const struct job *job_of(const struct mcp_call *call)
{
    for_each(job, jobs)
        if (strcmp(job->tool, call->tool->name) == 0)
            return job;
    return &jobs[0];
}

static struct kept *find_kept(const char *id)
{
    for_each(kept, tasks)
        if (kept->id[0] && strcmp(kept->id, id) == 0)
            return kept;
    return NULL;
}

static bool is_asked(const struct kept *kept, size_t which)
{
    return kept->job->questions[which] && !kept->is_answered[which];
}

static void describe(const struct kept *kept, struct mcp_task *task)
{
    *task = (struct mcp_task){ .created_ms = kept->created_ms,
                               .updated_ms = wall_clock_ms(),
                               .ttl_ms = SECONDS_MAX * 1000 };
    (void) snprintf(task->id, sizeof task->id, "%s", kept->id);
    task->status = kept->is_cancelled                       ? TASK_CANCELLED
                   : is_asked(kept, 0) || is_asked(kept, 1) ? TASK_INPUT_REQUIRED
                   : wall_clock_ms() < kept->ends_ms        ? TASK_WORKING
                                                            : kept->job->end;
    if (task->status == TASK_FAILED)
        (void) snprintf(task->message, sizeof task->message, "it broke");
}

static int find(struct mcp_call *call, const char *id, struct mcp_task *task)
{
    (void) call;
    const struct kept *kept = find_kept(id);
    if (kept)
        describe(kept, task);
    return kept ? 0 : -1;
}

static void write_greeting(const char *name, struct bytes *out)
{
    auto_bytes text = { 0 };
    bytes_print(&text, "Hello, %s!", name);
    json_open(out, '{');
    json_key(out, "content");
    json_open(out, '[');
    mcp_content_text(out, bytes_text(&text), text.size);
    json_close(out, ']');
    json_close(out, '}');
}

static void tell(struct mcp_call *call, const struct mcp_task *task, struct bytes *out)
{
    (void) call;
    const struct kept *kept = find_kept(task->id);
    if (!kept)
        return;
    if (task->status == TASK_INPUT_REQUIRED) {
        json_key(out, "inputRequests");
        json_open(out, '{');
        for (size_t i = 0; i < COUNT_OF(kept->is_answered); i++)
            if (is_asked(kept, i)) {
                json_key(out, kept->job->questions[i]);
                json_raw(out, question, sizeof question - 1);
            }
        json_close(out, '}');
    } else if (task->status == TASK_COMPLETED || task->status == TASK_FAILED) {
        json_key(out, task->status == TASK_FAILED ? "error" : "result");
        if (kept->job->outcome)
            json_raw(out, kept->job->outcome, strlen(kept->job->outcome));
        else
            write_greeting(kept->name, out);
    }
}

static void update(struct mcp_call *call, const struct mcp_task *task, struct json_object *answers)
{
    (void) call;
    struct kept *kept = find_kept(task->id);
    for (size_t i = 0; i < COUNT_OF(kept->is_answered); i++)
        if (kept && is_asked(kept, i) && json_member(answers, kept->job->questions[i]))
            kept->is_answered[i] = true;
}

static void cancel(struct mcp_call *call, const struct mcp_task *task)
{
    (void) call;
    struct kept *kept = find_kept(task->id);
    if (kept)
        kept->is_cancelled = true;
}

const struct mcp_task_source fixture_tasks = { find, tell, update, cancel };

/* --- the tools -------------------------------------------------------------------------------- */

static int64_t duration_ms(const struct mcp_call *call)
{
    struct json_object *seconds = json_member(call->arguments, "seconds");
    int64_t said = seconds ? json_object_get_int64(seconds) : -1;
    return said < 0 || said > SECONDS_MAX ? A_MOMENT_MS : said * 1000;
}

static void wait_for_end(struct mcp_call *call)
{
    int64_t end_ms = call->began_ms + duration_ms(call);
    if (now_ms() >= end_ms)
        fixture_result(call, TEXT_RESULT("computed"));
    else
        mcp_call_look_at(call, (deadline){ end_ms });
}

static void begin_for(struct mcp_call *call, const char *name)
{
    const struct job *job = job_of(call);
    unsigned char random[RANDOM_SIZE];
    struct mcp_task task;
    if (!mcp_may_be_task(call) && job->needs_tasks) {
        mcp_fail_needs_tasks(call);
        return;
    }
    if (!mcp_may_be_task(call)) {
        call->proceed = wait_for_end;
        wait_for_end(call);
        return;
    }
    struct kept *kept = &tasks[made++ % TASKS];
    randombytes_buf(random, sizeof random);
    *kept = (struct kept){ .job = job,
                           .created_ms = wall_clock_ms(),
                           .ends_ms = wall_clock_ms() + duration_ms(call) };
    (void) sodium_bin2hex(kept->id, sizeof kept->id, random, sizeof random);
    (void) snprintf(kept->name, sizeof kept->name, "%s", name);
    describe(kept, &task);
    task.status = TASK_WORKING;
    task.message[0] = '\0';
    mcp_task_answer(call, &task);
}

static void begin(struct mcp_call *call)
{
    begin_for(call, "");
}

/* Asks first, with the rounds of the call, and is a task from then on. */
static void ask_and_begin(struct mcp_call *call)
{
    static const struct mcp_question who = {
        "user_name", "elicitation/create",
        "\"message\":\"What is your "
        "name?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":"
        "{\"name\":{\"type\":\"string\"}},\"required\":[\"name\"]}"
    };
    struct json_object *answer = json_member(mcp_answer_to(call, who.name), "content");
    char state[MCP_STATE_SIZE];
    int round = mcp_state_read(call, state);
    if (round > 0 && member_text(answer, "name"))
        begin_for(call, member_text(answer, "name"));
    else if (round >= 0)
        mcp_ask(call, &who, "name");
}

static void greet(struct mcp_call *call)
{
    auto_bytes text = { 0 };
    const char *name = member_text(call->arguments, "name");
    bytes_print(&text, "Hello, %s!", name ? name : "");
    mcp_tool_text(call, bytes_text(&text), false);
}

#define FIXTURE(tool, begins, properties)                                                  \
    {                                                                                      \
        .name = tool, .text = "A fixture", .right = RIGHT_ANY,                             \
        .schema = "{\"type\":\"object\",\"properties\":{" properties "}}", .begin = begins \
    }

const struct mcp_tool fixture_task_tools[] = {
    FIXTURE("greet", greet, "\"name\":{\"type\":\"string\"}"),
    FIXTURE("slow_compute", begin,
            "\"seconds\":{\"type\":\"integer\"},\"label\":{\"type\":\"string\"}"),
    FIXTURE("failing_job", begin, ""),
    FIXTURE("protocol_error_job", begin, ""),
    FIXTURE("confirm_delete", begin, "\"filename\":{\"type\":\"string\"}"),
    FIXTURE("multi_input", begin, ""),
    FIXTURE("test_tool_with_task", ask_and_begin, ""),
};
const size_t fixture_task_tool_count = COUNT_OF(fixture_task_tools);
