/* tasks.c - the extension io.modelcontextprotocol/tasks: a call that takes long is answered with a
 * task, which the client polls (tasks/get), answers questions of (tasks/update) and cancels
 * (tasks/cancel). The catalogue says what is a task: run_tasks.c. */
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <microhttpd.h>
#include <string.h>

#define EXTENSION MCP_META "tasks"

static const char *const status_names[] = {
    [TASK_WORKING] = "working",     [TASK_INPUT_REQUIRED] = "input_required",
    [TASK_COMPLETED] = "completed", [TASK_FAILED] = "failed",
    [TASK_CANCELLED] = "cancelled",
};

bool mcp_may_be_task(const struct mcp_call *call)
{
    return call->catalogue->tasks && call->era == ERA_STATELESS && call->id &&
           json_object_is_type(
               json_member(json_member(call->capabilities, "extensions"), EXTENSION),
               json_type_object);
}

void mcp_fail_needs_tasks(struct mcp_call *call)
{
    call->status = MHD_HTTP_BAD_REQUEST;
    mcp_fail_with(call, MCP_NEEDS_CAPABILITY,
                  "{\"requiredCapabilities\":{\"extensions\":{\"" EXTENSION "\":{}}}}",
                  "Missing required client capability");
}

static void write_task(const struct mcp_task *task, struct bytes *out)
{
    json_string_field(out, "taskId", task->id);
    json_string_field(out, "status", status_names[task->status]);
    if (task->message[0])
        json_string_field(out, "statusMessage", task->message);
    json_moment_field(out, "createdAt", task->created_ms);
    json_moment_field(out, "lastUpdatedAt", task->updated_ms);
    json_key(out, "ttlMs");
    if (task->ttl_ms > 0)
        json_number(out, task->ttl_ms);
    else
        json_null(out);
    json_number_field(out, "pollIntervalMs", MCP_TASK_POLL_MS);
}

void mcp_task_answer(struct mcp_call *call, const struct mcp_task *task)
{
    write_task(task, mcp_result_open(call, "task"));
    mcp_result_close(call);
}

/* Finds the task that the message names. -1: there is none, or the client does not support tasks;
 * that was answered. */
static int find(struct mcp_call *call, struct mcp_task *task)
{
    const char *id = member_text(call->params, "taskId");
    memset(task, 0, sizeof *task);
    if (!mcp_may_be_task(call)) {
        mcp_fail_needs_tasks(call);
        return -1;
    }
    if (id && strlen(id) < sizeof task->id && call->catalogue->tasks->find(call, id, task) == 0)
        return 0;
    mcp_fail(call, MCP_INVALID_PARAMS, "you have no task '%.80s', or it was dropped", id ? id : "");
    return -1;
}

void mcp_tasks_get(struct mcp_call *call)
{
    struct mcp_task task;
    if (find(call, &task) < 0)
        return;
    struct bytes *out = mcp_result_open(call, NULL);
    write_task(&task, out);
    call->catalogue->tasks->tell(call, &task, out);
    mcp_result_close(call);
}

/* Drops answers to questions that are not pending. */
void mcp_tasks_update(struct mcp_call *call)
{
    struct mcp_task task;
    struct json_object *answers = json_member(call->params, "inputResponses");
    if (find(call, &task) < 0)
        return;
    if (!json_object_is_type(answers, json_type_object)) {
        mcp_fail(call, MCP_INVALID_PARAMS, "tasks/update has 'inputResponses', an object");
        return;
    }
    if (task.status == TASK_INPUT_REQUIRED && call->catalogue->tasks->update)
        call->catalogue->tasks->update(call, &task, answers);
    mcp_acknowledge(call);
}

/* A task that has ended does not change. */
void mcp_tasks_cancel(struct mcp_call *call)
{
    struct mcp_task task;
    if (find(call, &task) < 0)
        return;
    if (task.status == TASK_WORKING || task.status == TASK_INPUT_REQUIRED)
        call->catalogue->tasks->cancel(call, &task);
    mcp_acknowledge(call);
}
