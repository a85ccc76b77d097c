/* pool_classes_test.c - how many sandboxes wait, and which shape gives up its place. */
#include "base/test.h"
#include "engine/sandbox/pool_classes.h"

#include "base/table.h"

#include <stdbool.h>

enum { NOW_MS = 1000000, MINUTE_MS = 60000 };

static struct spawn_build with_memory(uint64_t bytes)
{
    return (struct spawn_build){ .memory_bytes = bytes };
}

TEST(a_shape_is_found_again)
{
    static struct shapes shapes;
    struct spawn_build small = with_memory(1);
    struct spawn_build large = with_memory(2);
    struct shape *first = shapes_find(&shapes, &small, NOW_MS);
    struct shape *second = shapes_find(&shapes, &large, NOW_MS);
    require(first && second, "there is room for both");
    expect(first != second, "two shapes share a place");
    expect(shapes_find(&shapes, &small, NOW_MS + 1) == first, "the first is not found again");
    expect(shapes_find(&shapes, &large, NOW_MS + 1) == second, "the second is not found again");
}

TEST(the_shape_unused_for_longest_gives_up_its_place)
{
    static struct shapes shapes;
    for (uint64_t i = 0; i < SHAPES_MOST; i++) {
        struct spawn_build build = with_memory(i + 1);
        require(shapes_find(&shapes, &build, NOW_MS + i), "place %d", (int) i);
    }
    shapes.list[0].is_kept = true;
    shapes.list[1].parked = 1;
    shapes.list[2].building = 1;
    struct spawn_build more = with_memory(1000);
    struct shape *taken = shapes_find(&shapes, &more, NOW_MS + MINUTE_MS);
    expect(taken == &shapes.list[3], "place %d was taken", (int) (taken - shapes.list));
    expect(taken->build.memory_bytes == 1000 && taken->rate == 0 && taken->recent == 0,
           "the place still tells of the shape before");
    for_each(shape, shapes.list)
        shape->parked = 1;
    more = with_memory(1001);
    expect(!shapes_find(&shapes, &more, NOW_MS), "a shape in use lost its place");
}

TEST(demand_rises_at_once_and_fades)
{
    static struct shapes shapes;
    struct shape *shape = &shapes.list[0];
    for (int i = 0; i < 100; i++)
        shape_leased(shape, NOW_MS);
    shapes_count(&shapes);
    expect(shape->rate == 100 && shape->recent == 0, "rate %g, recent %u", shape->rate,
           shape->recent);
    shapes_count(&shapes);
    expect(shape->rate > 79 && shape->rate < 81, "rate %g after an idle second", shape->rate);
    for (int i = 0; i < 60; i++)
        shapes_count(&shapes);
    expect(shape->rate < 0.01, "rate %g after an idle minute", shape->rate);
}

TEST(as_many_wait_as_demand_asks_for)
{
    static const struct {
        const char *what;
        struct shape shape;
        uint32_t least, most, target;
    } facts[] = {
        { "a place that is not used", { .last_ms = NOW_MS }, 2, 16, 0 },
        { "a shape just used", { .is_used = true, .last_ms = NOW_MS }, 2, 16, 2 },
        { "less than one more", { .is_used = true, .last_ms = NOW_MS, .rate = 19 }, 2, 16, 2 },
        { "forty a second", { .is_used = true, .last_ms = NOW_MS, .rate = 40 }, 2, 16, 4 },
        { "more than is allowed", { .is_used = true, .last_ms = NOW_MS, .rate = 900 }, 2, 16, 16 },
        { "nothing is ever parked", { .is_used = true, .last_ms = NOW_MS, .rate = 40 }, 2, 0, 0 },
        { "a minute ago", { .is_used = true, .last_ms = NOW_MS - MINUTE_MS, .rate = 40 }, 2, 9, 4 },
        { "forgotten", { .is_used = true, .last_ms = NOW_MS - MINUTE_MS - 1 }, 2, 16, 0 },
        { "forgotten, but kept",
          { .is_used = true, .is_kept = true, .last_ms = NOW_MS - MINUTE_MS - 1, .rate = 40 },
          2,
          16,
          2 },
        { "resting after failures",
          { .is_used = true, .is_kept = true, .last_ms = NOW_MS, .rests_until_ms = NOW_MS + 1 },
          2,
          16,
          0 },
        { "rested", { .is_used = true, .last_ms = NOW_MS, .rests_until_ms = NOW_MS }, 2, 16, 2 },
    };
    for_each(fact, facts) {
        struct shapes shapes = { .least = fact->least, .most = fact->most };
        uint32_t target = shape_target(&shapes, &fact->shape, NOW_MS);
        expect(target == fact->target, "%s: %u, not %u", fact->what, target, fact->target);
    }
}

TEST(the_lightest_set_has_more_that_are_primed)
{
    struct shape shape = { .is_used = true, .build = { .start = SPAWN_FORKED, .zygote = 1 } };
    expect(shape_primed_target(&shape) == 1, "a second set");
    shape.build.zygote = 0;
    expect(shape_primed_target(&shape) == 4, "the lightest set");
    shape.build = (struct spawn_build){ .start = SPAWN_EMPTY, .zygote = 1 };
    expect(shape_primed_target(&shape) == 0, "no interpreter");
}

TESTS(CASE(a_shape_is_found_again), CASE(the_shape_unused_for_longest_gives_up_its_place),
      CASE(demand_rises_at_once_and_fades), CASE(as_many_wait_as_demand_asks_for),
      CASE(the_lightest_set_has_more_that_are_primed))
