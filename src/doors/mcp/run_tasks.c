/* run_tasks.c - tasks: runs that took longer than their call waited. The task has the run's id, and
 * a key that may see the run may see the task. The result is copied at its end, since all clients
 * share the memory of ended runs, where it may be dropped earlier. A run that was under way when a
 * daemon died is reported as lost by the next one. */
#include "base/clock.h"
#include "base/list.h"
#include "doors/mcp/mcp.h"
#include "json/writer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TASKS_MAX = 1024,
    TASKS_OF_ACCOUNT_MAX = 256,
    TASK_BYTES_MAX = 64 << 20, /* of results; the oldest are dropped */
    TASK_BYTES_OF_ACCOUNT_MAX = 16 << 20,
    KEPT_MS = 15 * 60 * 1000 /* after its end */
};

struct run_task {
    struct watch *watch; /* until its end */
    char id[MCP_TASK_ID_SIZE];
    struct account *account;
    const struct mcp_client *process; /* whose end cancels it; NULL: none */
    int64_t created_ms, updated_ms;   /* since 1970 */
    int64_t began_ms, ended_ms;       /* by now_ms(); 0: not ended */
    enum run_status status;           /* how it ended */
    struct bytes result;
    bool is_mine; /* it ran in the client's own session */
    struct run_task *next;
};

static struct run_task *tasks; /* the newest first */

static void unlink_task(struct run_task *task)
{
    (void) list_remove(tasks, task, next);
}

static void drop(struct run_task *task)
{
    unlink_task(task);
    if (task->watch)
        watch_close(task->watch);
    bytes_done(&task->result);
    free(task);
}

static void drop_expired(void)
{
    for (struct run_task *task = tasks, *next; task; task = next) {
        next = task->next;
        if (task->ended_ms != 0 && now_ms() - task->ended_ms > KEPT_MS)
            drop(task);
    }
}

/* Sums up tasks; `account` NULL: of all. `ret_oldest`: the oldest that has ended, except `but`. */
static size_t measure(const struct account *account, const struct run_task *but, size_t *ret_count,
                      struct run_task **ret_oldest)
{
    size_t bytes = 0;
    *ret_count = 0;
    *ret_oldest = NULL;
    for (struct run_task *task = tasks; task; task = task->next) {
        if (account && task->account != account)
            continue;
        (*ret_count)++;
        bytes += task->result.size;
        if (task != but && task->ended_ms != 0)
            *ret_oldest = task;
    }
    return bytes;
}

static void bound_bytes(const struct account *account, const struct run_task *but, size_t max)
{
    size_t count;
    struct run_task *oldest;
    while (measure(account, but, &count, &oldest) > max && oldest)
        drop(oldest);
}

/* May be called by the run while it calls its listeners: closes only the watch of this task. */
static void on_woken(void *context)
{
    struct run_task *task = context;
    task->updated_ms = wall_clock_ms();
    if (!watch_is_over(task->watch))
        return;
    const struct bytes *result = watch_result(task->watch);
    task->ended_ms = now_ms();
    task->status = watch_status(task->watch);
    bytes_add(&task->result, result->data, result->size);
    watch_close(task->watch);
    task->watch = NULL;
    bound_bytes(task->account, task, TASK_BYTES_OF_ACCOUNT_MAX);
    bound_bytes(NULL, task, TASK_BYTES_MAX);
}

static void on_cut(void *context)
{
    (void) context; /* only ended tasks are removed */
}

/* Is there room for one more? The oldest that has ended is removed if needed. */
static bool make_room(const struct account *account)
{
    size_t own, all;
    struct run_task *own_oldest, *oldest;
    drop_expired();
    (void) measure(account, NULL, &own, &own_oldest);
    if (own >= TASKS_OF_ACCOUNT_MAX && own_oldest) {
        drop(own_oldest);
        own--;
    }
    (void) measure(NULL, NULL, &all, &oldest);
    if (all >= TASKS_MAX && oldest) {
        drop(oldest);
        all--;
    }
    return own < TASKS_OF_ACCOUNT_MAX && all < TASKS_MAX;
}

static void describe(const struct run_task *kept, struct mcp_task *task)
{
    *task = (struct mcp_task){ .created_ms = kept->created_ms, .updated_ms = kept->updated_ms };
    (void) snprintf(task->id, sizeof task->id, "%s", kept->id);
    task->status = kept->ended_ms == 0             ? TASK_WORKING
                   : kept->status == RUN_CANCELLED ? TASK_CANCELLED
                                                   : TASK_COMPLETED;
    task->ttl_ms = (kept->ended_ms != 0 ? kept->ended_ms : now_ms()) - kept->began_ms + KEPT_MS;
    if (kept->watch)
        mcp_run_state_print(kept->watch, task->message, sizeof task->message);
}

static struct run_task *of_process(const struct mcp_client *process)
{
    struct run_task *task = tasks;
    while (task && task->process != process)
        task = task->next;
    return task;
}

/* Cancels those that the process has begun. A queued run ends at once: then on_woken() is called
 * while the task is not in the list but still exists, and it may drop other tasks. */
static void end_with(const struct mcp_client *process)
{
    struct run_task *task;
    while ((task = of_process(process))) {
        unlink_task(task);
        if (task->watch)
            watch_cancel(task->watch);
        drop(task);
    }
}

bool mcp_run_becomes_task(struct mcp_call *call)
{
    struct mcp_task told;
    struct exchange *exchange = call->exchange;
    struct mcp_work *work = &call->work;
    error err;
    struct run_task *task = make_room(exchange->caller.account) ? calloc(1, sizeof *task) : NULL;
    if (!task)
        return false;
    const struct watcher watcher = { task, on_woken, on_cut, HANGUP_LEAVES };
    (void) snprintf(task->id, sizeof task->id, "%s", watch_id(work->watch));
    task->watch = service_watch(exchange->service, &exchange->caller, task->id, &watcher, &err);
    if (!task->watch) {
        free(task);
        return false;
    }
    task->account = exchange->caller.account;
    task->process = call->process;
    if (call->process)
        call->process->ended = end_with;
    task->is_mine = work->is_mine;
    task->created_ms = task->updated_ms = wall_clock_ms();
    task->began_ms = now_ms();
    task->next = tasks;
    tasks = task;
    watch_let_run(work->watch);
    watch_close(work->watch);
    work->watch = NULL;
    describe(task, &told);
    if (work->note[0]) /* given once: the session that the call wanted has ended */
        (void) snprintf(told.message, sizeof told.message, "%s", work->note);
    mcp_task_answer(call, &told);
    return true;
}

static struct run_task *find_kept(const struct mcp_call *call, const char *id)
{
    const struct caller *caller = &call->exchange->caller;
    for (struct run_task *task = tasks; task; task = task->next) {
        const struct caller owner = { .account = task->account };
        if (strcmp(task->id, id) == 0)
            return service_sees(caller, &owner) ? task : NULL;
    }
    return NULL;
}

static void leave_alone(void *context)
{
    (void) context;
}

/* A task of an earlier daemon: its watch is in call->work. */
static int find_lost(struct mcp_call *call, const char *id, struct mcp_task *task)
{
    const struct watcher watcher = { call, leave_alone, leave_alone, HANGUP_LEAVES };
    struct exchange *exchange = call->exchange;
    error err;
    struct watch *watch = service_watch(exchange->service, &exchange->caller, id, &watcher, &err);
    if (watch && !watch_is_lost(watch)) { /* a run, and no task */
        watch_close(watch);
        watch = NULL;
    }
    if (!watch)
        return -1;
    call->work.watch = watch;
    *task = (struct mcp_task){ .status = TASK_COMPLETED,
                               .created_ms = wall_clock_ms(),
                               .updated_ms = wall_clock_ms(),
                               .ttl_ms = KEPT_MS };
    (void) snprintf(task->id, sizeof task->id, "%s", id);
    return 0;
}

static int find(struct mcp_call *call, const char *id, struct mcp_task *task)
{
    error err;
    drop_expired();
    if (service_check_right(&call->exchange->caller, RIGHT_RESULTS, &err) < 0)
        return -1;
    const struct run_task *kept = find_kept(call, id);
    if (!kept)
        return find_lost(call, id, task);
    describe(kept, task);
    return 0;
}

static void tell(struct mcp_call *call, const struct mcp_task *task, struct bytes *out)
{
    const struct run_task *kept = find_kept(call, task->id);
    if (task->status != TASK_COMPLETED)
        return;
    call->work.is_mine = kept && kept->is_mine;
    json_open_field(out, "result", '{');
    mcp_run_write(call, kept ? &kept->result : watch_result(call->work.watch), out);
    json_close(out, '}');
}

static void cancel(struct mcp_call *call, const struct mcp_task *task)
{
    const struct run_task *kept = find_kept(call, task->id);
    if (kept && kept->watch)
        watch_cancel(kept->watch);
}

const struct mcp_task_source mcp_run_tasks = { find, tell, NULL, cancel };
