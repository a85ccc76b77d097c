/* oneshot_test.c - a run while the daemon has no memory: it ends as lost, and nothing else is
 * affected. The pool has one sandbox of the test, and the linker (--wrap) makes allocations
 * fail. */
#include "base/test.h"

#include "engine/run/run.h"

#include <stdlib.h>
#include <sys/socket.h>

static struct sandbox *idle;
static bool is_starved;

int __wrap_pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
                      struct sandbox **ret_parked, error *err);
void __wrap_pool_return(struct pool *pool, struct sandbox *sandbox);
void *__real_realloc(void *data, size_t size);
void *__wrap_realloc(void *data, size_t size);

int __wrap_pool_lease(struct pool *pool, const struct lease *lease, struct pool_ticket **ret_ticket,
                      struct sandbox **ret_parked, error *err)
{
    (void) pool;
    (void) lease;
    (void) ret_ticket;
    (void) err;
    *ret_parked = idle;
    return POOL_LEASED;
}

void __wrap_pool_return(struct pool *pool, struct sandbox *sandbox)
{
    (void) pool;
    sandbox_close(sandbox);
}

void *__wrap_realloc(void *data, size_t size)
{
    return is_starved ? NULL : __real_realloc(data, size);
}

static void hear_nothing(void *context)
{
    (void) context;
}

static struct run *make_run(struct runs *runs)
{
    static struct policy policy;
    static struct template template = { .name = "minimal", .digest = "sha256:0" };
    struct run *run = run_make(runs);
    static struct account account;
    require(run, "memory");
    run->account = &account;
    run->request = calloc(1, sizeof *run->request);
    require(run->request, "memory");
    limits_init(&policy.maximum);
    run->plan = (struct run_spec){ .policy = &policy, .template = &template, .set = -1 };
    limits_init(&run->plan.limits);
    bytes_add_text(&run->plan.program, "a command");
    collector_init(&run->collector, &run->plan.limits, "data", NULL);
    run->has_harvest = true;
    return run;
}

TEST(a_run_without_memory_for_its_orders_is_lost)
{
    static uv_loop_t loop;
    static struct spawner_link spawner;
    static const struct spawner_watcher watcher = { .hello = hear_nothing, .gone = hear_nothing };
    static struct accounts accounts;
    struct runs runs = { .loop = &loop, .processors = 1, .accounts = &accounts };
    struct spawned spawned = { .groups = { -1, -1, -1, -1, -1, -1, -1 } };
    int link[2];
    int inside[2];
    error err;
    require(uv_loop_init(&loop) == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET, 0, link) == 0 &&
                socketpair(AF_UNIX, SOCK_STREAM, 0, inside) == 0,
            "sockets");
    require(spawner_open(&spawner, &loop, link[0], &watcher, &err) == 0, "%s", err.text);
    spawned.inside = inside[0];
    require(sandbox_open(&spawner, &spawned, &idle, &err) == 0, "%s", err.text);
    runs_open(&runs);
    struct run *run = make_run(&runs);
    runs_list(&runs, run);

    is_starved = true;
    expect(run_begin(run), "there is no room");
    is_starved = false;
    expect(run->state == RUN_DONE, "it is %s", run_state_name(run->state));
    expect(run->verdict.status == RUN_LOST, "status %u", run->verdict.status);
}

TESTS(CASE(a_run_without_memory_for_its_orders_is_lost))
