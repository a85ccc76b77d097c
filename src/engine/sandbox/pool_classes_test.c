/* pool_classes_test.c - how many sandboxes are parked, and which shape is replaced. */
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
    static struct pool_classes pool_classes;
    struct spawn_build small = with_memory(1);
    struct spawn_build large = with_memory(2);
    struct pool_class *first = pool_classes_find(&pool_classes, &small, NOW_MS);
    struct pool_class *second = pool_classes_find(&pool_classes, &large, NOW_MS);
    require(first && second, "there is room for both");
    expect(first != second, "two shapes share a place");
    expect(pool_classes_find(&pool_classes, &small, NOW_MS + 1) == first,
           "the first is not found again");
    expect(pool_classes_find(&pool_classes, &large, NOW_MS + 1) == second,
           "the second is not found again");
}

TEST(the_shape_unused_for_longest_gives_up_its_place)
{
    static struct pool_classes pool_classes;
    for (uint64_t i = 0; i < POOL_CLASSES_MAX; i++) {
        struct spawn_build build = with_memory(i + 1);
        require(pool_classes_find(&pool_classes, &build, NOW_MS + i), "place %d", (int) i);
    }
    pool_classes.list[0].is_kept = true;
    pool_classes.list[1].idle = 1;
    pool_classes.list[2].building = 1;
    struct spawn_build more = with_memory(1000);
    struct pool_class *taken = pool_classes_find(&pool_classes, &more, NOW_MS + MINUTE_MS);
    expect(taken == &pool_classes.list[3], "place %d was taken", (int) (taken - pool_classes.list));
    expect(taken->build.memory_bytes == 1000 && taken->rate == 0 && taken->recent == 0,
           "the place still tells of the shape before");
    for_each(pool_class, pool_classes.list)
        pool_class->idle = 1;
    more = with_memory(1001);
    expect(!pool_classes_find(&pool_classes, &more, NOW_MS), "a shape in use lost its place");
}

TEST(demand_rises_at_once_and_fades)
{
    static struct pool_classes pool_classes;
    struct pool_class *pool_class = &pool_classes.list[0];
    for (int i = 0; i < 100; i++)
        pool_class_leased(pool_class, NOW_MS);
    pool_classes_count(&pool_classes);
    expect(pool_class->rate == 100 && pool_class->recent == 0, "rate %g, recent %u",
           pool_class->rate, pool_class->recent);
    pool_classes_count(&pool_classes);
    expect(pool_class->rate > 79 && pool_class->rate < 81, "rate %g after an idle second",
           pool_class->rate);
    for (int i = 0; i < 60; i++)
        pool_classes_count(&pool_classes);
    expect(pool_class->rate < 0.01, "rate %g after an idle minute", pool_class->rate);
}

TEST(as_many_wait_as_demand_asks_for)
{
    static const struct {
        const char *what;
        struct pool_class pool_class;
        uint32_t min, max, target;
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
        struct pool_classes pool_classes = { .min = fact->min, .max = fact->max };
        uint32_t target = pool_class_target(&pool_classes, &fact->pool_class, NOW_MS);
        expect(target == fact->target, "%s: %u, not %u", fact->what, target, fact->target);
    }
}

TEST(the_lightest_set_has_more_that_are_primed)
{
    struct pool_class pool_class = { .is_used = true,
                                     .build = { .start = SPAWN_FORKED, .zygote = 1 } };
    expect(pool_class_prewarm_target(&pool_class) == 1, "a second set");
    pool_class.build.zygote = 0;
    expect(pool_class_prewarm_target(&pool_class) == 4, "the lightest set");
    pool_class.build = (struct spawn_build){ .start = SPAWN_EMPTY, .zygote = 1 };
    expect(pool_class_prewarm_target(&pool_class) == 0, "no interpreter");
}

/* Two shapes with `first` and `second` parked sandboxes, whose targets are 2 and 16. */
static struct pool_class *neediest_of(struct pool_classes *pool_classes, uint32_t first,
                                      uint32_t second)
{
    pool_classes->list[0].idle = first;
    pool_classes->list[1].idle = second;
    return pool_classes_neediest(pool_classes, true, NOW_MS);
}

TEST(the_shape_that_lacks_the_larger_share_is_built_first)
{
    static struct pool_classes pool_classes = {
        .list = { { .is_used = true, .has_stood = true, .last_ms = NOW_MS },
                  { .is_used = true, .has_stood = true, .last_ms = NOW_MS, .rate = 900 } },
        .min = 2,
        .max = 16,
    };
    struct pool_class *rare = &pool_classes.list[0], *frequent = &pool_classes.list[1];
    expect(neediest_of(&pool_classes, 1, 9) == rare, "one of two is missing, and waits");
    expect(neediest_of(&pool_classes, 1, 7) == frequent, "nine of sixteen wait for one of two");
    expect(neediest_of(&pool_classes, 1, 8) == rare, "of equals not the first in the list");
    expect(neediest_of(&pool_classes, 2, 15) == frequent, "one of sixteen is not built");
    expect(!neediest_of(&pool_classes, 2, 16), "one is built that is not wanted");
    expect(!neediest_of(&pool_classes, 3, 17), "one is built beyond what is wanted");
    frequent->building = 1;
    expect(!neediest_of(&pool_classes, 2, 15), "what is being built is not counted");
}

TEST(shapes_that_lack_the_same_take_turns)
{
    static struct pool_classes pool_classes = {
        .list = { { .is_used = true, .has_stood = true, .last_ms = NOW_MS },
                  { .is_used = true, .has_stood = true, .last_ms = NOW_MS } },
        .min = 2,
        .max = 16,
    };
    struct pool_class *last = NULL;
    for (int i = 0; i < 6; i++) {
        struct pool_class *now = neediest_of(&pool_classes, 0, 0);
        require(now, "none is built");
        expect(now != last, "turn %d: the same shape again", i);
        pool_class_builds(&pool_classes, now);
        expect(now->building == 1, "it is not counted");
        now->building = 0; /* taken as soon as it was ready */
        last = now;
    }
}

TEST(shapes_of_the_tenant_with_fewest_builds_come_first)
{
    static struct pool_classes pool_classes = {
        .list = { { .is_used = true, .has_stood = true, .last_ms = NOW_MS, .rate = 900 },
                  { .is_used = true, .has_stood = true, .last_ms = NOW_MS, .build.tenant = 1 } },
        .min = 2,
        .max = 16,
    };
    struct pool_class *frequent = &pool_classes.list[0], *rare = &pool_classes.list[1];
    pool_tenant_builds(&pool_classes, 0);
    expect(neediest_of(&pool_classes, 0, 1) == rare, "one that takes each at once lacks all");
    expect(neediest_of(&pool_classes, 0, 2) == frequent, "the other lacks nothing");
    pool_tenant_builds(&pool_classes, 1);
    expect(neediest_of(&pool_classes, 0, 1) == frequent, "of equals it is the larger share");
    pool_tenant_builds(&pool_classes, 1);
    expect(neediest_of(&pool_classes, 15, 0) == frequent, "more were built for the other");
    for (int i = 0; i < 6; i++)
        pool_classes_count(&pool_classes);
    expect(neediest_of(&pool_classes, 12, 0) == rare, "what was built long ago counts");
}

/* Numbers that end alike, and more tenants than there are rows. */
TEST(builds_for_one_tenant_are_not_those_of_another)
{
    static struct pool_classes pool_classes = {
        .list = { { .is_used = true, .has_stood = true, .last_ms = NOW_MS, .build.tenant = 3 },
                  { .is_used = true,
                    .has_stood = true,
                    .last_ms = NOW_MS,
                    .rate = 900,
                    .build.tenant = 3 + 128 } },
        .min = 2,
        .max = 16,
    };
    const struct pool_class *polite = &pool_classes.list[0];
    for (int i = 0; i < 9; i++)
        pool_tenant_builds(&pool_classes, 3 + 64);
    pool_tenant_builds(&pool_classes, 3 + 128);
    expect(neediest_of(&pool_classes, 1, 0) == polite, "what a third had built is counted");
    for (uint32_t i = 1000; i < 1200; i++)
        pool_tenant_builds(&pool_classes, i);
    for (int i = 0; i < 3; i++)
        pool_tenant_builds(&pool_classes, 3 + 128);
    for (uint32_t i = 1200; i < 1400; i++)
        pool_tenant_builds(&pool_classes, i);
    expect(neediest_of(&pool_classes, 1, 0) == polite, "others make it forget who had most");
}

TEST(a_cold_interpreter_is_warmed_only_if_it_may)
{
    static struct pool_classes pool_classes = {
        .list = { { .is_used = true, .last_ms = NOW_MS } },
        .min = 2,
        .max = 16,
    };
    expect(!pool_classes_neediest(&pool_classes, false, NOW_MS), "it is warmed beside a request");
    expect(pool_classes_neediest(&pool_classes, true, NOW_MS), "it is never warmed");
    pool_classes.list[0].has_stood = true;
    expect(pool_classes_neediest(&pool_classes, false, NOW_MS), "a warm one is not built");
}

TESTS(CASE(a_shape_is_found_again), CASE(the_shape_unused_for_longest_gives_up_its_place),
      CASE(demand_rises_at_once_and_fades), CASE(as_many_wait_as_demand_asks_for),
      CASE(the_lightest_set_has_more_that_are_primed),
      CASE(the_shape_that_lacks_the_larger_share_is_built_first),
      CASE(shapes_that_lack_the_same_take_turns),
      CASE(builds_for_one_tenant_are_not_those_of_another),
      CASE(shapes_of_the_tenant_with_fewest_builds_come_first),
      CASE(a_cold_interpreter_is_warmed_only_if_it_may))
