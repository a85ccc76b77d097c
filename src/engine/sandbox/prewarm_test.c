/* prewarm_test.c - which parked sandboxes are told to run ahead or to copy their pages, and when.
 */
#include "base/test.h"

#include "engine/session/fake_engine_test.h"

static const struct limits small = { .memory = 1 << 20 };
static const struct lease rich = { .set = 1, .limits = &small }, light = { .limits = &small };

/* Two of this shape are parked, and nothing has been asked for a while. */
static void park_two(const struct lease *lease)
{
    fake_begin();
    fake.pool.has_processors = true;
    fake.pool.pool_classes.min = fake.pool.pool_classes.max = 2;
    pool_keep(&fake.pool, lease);
    for (unsigned waited = 0; fake.pool.idle < 2 && waited < 100; waited++)
        fake_pass(20);
    require(fake.pool.idle == 2, "%u are parked", fake.pool.idle);
}

/* The flags of the order to this slot that was not read yet; -1: there is none. */
static int order_to(unsigned slot)
{
    struct agent_execute order;
    const struct fake_frame *frame = fake_order(slot, AGENT_EXECUTE);
    if (!frame)
        return -1;
    memcpy(&order, frame->payload, sizeof order);
    expect(order.mode == AGENT_MODE_PRIME, "slot %u runs mode %u", slot, order.mode);
    return (int) order.flags;
}

static void has_run_ahead(unsigned slot)
{
    const struct agent_executed executed = { 0 };
    fake_pass(20);
    expect(order_to(slot) == 0, "slot %u is not told to run ahead", slot);
    fake_says(slot, AGENT_EXECUTED, AGENT_INTERPRETER, &executed, sizeof executed);
}

static struct sandbox *take(const struct lease *lease)
{
    struct pool_ticket *ticket = NULL;
    struct sandbox *parked = NULL;
    error err;
    require(pool_lease(&fake.pool, lease, &ticket, &parked, &err) == POOL_LEASED, "a lease");
    require(parked && !ticket, "nothing was parked");
    return parked;
}

TEST(the_second_of_two_finds_its_pages_copied)
{
    park_two(&rich);
    has_run_ahead(0);
    fake_pass(200);
    struct sandbox *first = take(&rich);
    expect(order_to(1) == -1, "the run that was asked for begins first");
    fake_pass(1);
    expect(order_to(1) == AGENT_EXECUTE_PAGES, "the next one is not told");
    struct sandbox *second = take(&rich);
    expect(second != first && sandbox_name(second)->slot == 1, "it may be taken meanwhile");
    pool_return(&fake.pool, first);
    pool_return(&fake.pool, second);
    fake_end();
}

TEST(requests_that_follow_each_other_make_no_work_of_it)
{
    park_two(&rich);
    has_run_ahead(0);
    fake_pass(200);
    pool_return(&fake.pool, take(&rich));
    fake_pass(5);
    expect(order_to(1) == AGENT_EXECUTE_PAGES, "the first of them");
    pool_return(&fake.pool, take(&rich));
    fake_pass(5);
    expect(order_to(0) == -1 && order_to(1) == -1, "the second came 5 ms later");
    fake_end();
}

TEST(only_libraries_and_a_second_processor_are_worth_it)
{
    park_two(&light);
    has_run_ahead(0);
    has_run_ahead(1);
    fake_pass(200);
    pool_return(&fake.pool, take(&light));
    fake_pass(1);
    expect(order_to(1) == -1, "the lightest set");
    fake_end();
    park_two(&rich);
    has_run_ahead(0);
    fake_pass(200);
    fake.pool.has_processors = false;
    pool_return(&fake.pool, take(&rich));
    fake_pass(1);
    expect(order_to(1) == -1, "one processor, which the run needs");
    fake_end();
}

TESTS(CASE(the_second_of_two_finds_its_pages_copied),
      CASE(requests_that_follow_each_other_make_no_work_of_it),
      CASE(only_libraries_and_a_second_processor_are_worth_it))
