/* queue_test.c - the order in which runs begin, which are refused, and how long a run that has
 * ended is kept. Runs are bare structs that begin while there is room (--wrap of run.c and
 * run_clock.c). */
#include "base/test.h"

#include "engine/run/run.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_MAX = 1000, WHOLE_MAX = 64, MIB = 1024 * 1024 };

static struct accounts accounts;
static struct account red, blue;
static struct spawner_link spawner;
static struct pool pool;
static struct runs runs;
static struct run many[KEPT_MAX + 4];
static unsigned room; /* sandboxes that are free */
static char begun[64];
static struct run *next_made; /* NULL: none can be made */
static unsigned freed, made, slimmed, refused;
static struct run *last_freed, *last_slimmed;

bool __wrap_run_begin(struct run *run);
void __wrap_run_free(struct run *run);
void __wrap_run_notify(struct run *run);
void __wrap_run_release_buffers(struct run *run);
void __wrap_metrics_run_ended(const struct run *run);
void __wrap_check_refuse(const struct run *run, struct denials *denials);
void __wrap_run_drop(struct run *run);
int __wrap_run_new(struct runs *of, struct run_request *request, struct run **ret_run, error *err);

bool __wrap_run_begin(struct run *run)
{
    if (room == 0)
        return false;
    room--;
    begun[strlen(begun)] = run->id[0];
    return true;
}

void __wrap_run_free(struct run *run)
{
    freed++;
    last_freed = run;
}

void __wrap_run_notify(struct run *run)
{
    (void) run;
}

void __wrap_run_release_buffers(struct run *run)
{
    slimmed++;
    last_slimmed = run;
}

void __wrap_metrics_run_ended(const struct run *run)
{
    (void) run;
}

int __wrap_run_new(struct runs *of, struct run_request *request, struct run **ret_run, error *err)
{
    (void) of;
    (void) request;
    made++;
    if (!next_made)
        return fail(err, ERR_SYSTEM, "run_new was called");
    *ret_run = next_made;
    return 0;
}

void __wrap_run_drop(struct run *run)
{
    (void) run;
    freed++;
}

void __wrap_check_refuse(const struct run *run, struct denials *denials)
{
    (void) run;
    (void) denials;
    refused++;
}

static void begin(void)
{
    memset(&accounts, 0, sizeof accounts);
    memset(begun, 0, sizeof begun);
    room = freed = made = slimmed = refused = 0;
    last_freed = last_slimmed = next_made = NULL;
    red = (struct account){ .tenant = 1, .key.id = "red", .next = &blue };
    blue = (struct account){ .tenant = 2, .key.id = "blue" };
    accounts.all = &red;
    spawner = (struct spawner_link){ .is_open = true };
    pool = (struct pool){ .spawner = &spawner, .slots = 8 };
    runs = (struct runs){ .accounts = &accounts, .pool = &pool, .queued_max = 3, .processors = 4 };
}

static struct run *add(struct run *run, struct account *account, const char *id)
{
    *run = (struct run){ .runs = &runs, .account = account, .kind = &run_kind_oneshot };
    (void) snprintf(run->id, sizeof run->id, "%s", id);
    runs_list(&runs, run);
    return run;
}

/* The first `count` of them wait, with the ids 1, 2, 3 … */
static void enqueue(unsigned count, struct account *account)
{
    for (unsigned i = 0; i < count; i++) {
        char name[2] = { (char) ('1' + i) };
        runs_enqueue(add(&many[i], account, name));
    }
}

static void end(struct run *run, size_t result_bytes)
{
    run->state = RUN_DONE;
    run->result.size = result_bytes;
    runs_ended(&runs, run);
}

static void expect_begun(const char *order)
{
    expect(strcmp(begun, order) == 0, "begun: '%s', not '%s'", begun, order);
}

TEST(runs_of_one_key_begin_in_the_order_in_which_they_came)
{
    begin();
    enqueue(4, &red);
    expect_begun("");
    expect(runs.queued == 4 && red.turn.queued == 4, "%u, %u wait", runs.queued, red.turn.queued);
    room = 3;
    runs_proceed(&runs);
    expect_begun("123");
    expect(runs.queued == 1 && runs.active == 3 && red.turn.active == 3, "%u wait, %u run, %u",
           runs.queued, runs.active, red.turn.active);
    room = 5;
    runs_proceed(&runs);
    expect_begun("1234");
    expect(!red.first_queued && !red.last_queued && room == 4, "the queue is not empty");
}

TEST(a_key_with_many_runs_does_not_delay_another_key)
{
    begin();
    enqueue(4, &red);
    runs_enqueue(add(&many[4], &blue, "b"));
    room = 2;
    runs_proceed(&runs);
    expect(strchr(begun, 'b'), "begun: '%s'", begun);
}

/* A waiting run that ends is removed from the queue, whatever its position. */
TEST(a_run_that_is_cancelled_while_it_waits_leaves_the_queue)
{
    for (unsigned gone = 0; gone < 3; gone++) {
        static const char *const left[] = { "234", "134", "124" };
        begin();
        enqueue(3, &red);
        end(&many[gone], 10);
        expect(runs.queued == 2 && red.turn.queued == 2, "%u, %u wait", runs.queued,
               red.turn.queued);
        expect(runs.active == 0 && red.turn.active == 0 && red.runs == 1, "it has not run");
        runs_enqueue(add(&many[3], &red, "4"));
        room = 9;
        runs_proceed(&runs);
        expect_begun(left[gone]);
    }
}

TEST(a_run_that_has_left_its_sandbox_gives_its_turn_back_once)
{
    begin();
    room = 1;
    enqueue(1, &red);
    many[0].leased_us = 1;
    many[0].counters.cpu_us = 5000;
    runs_leave(&many[0]);
    expect(runs.active == 0 && red.turn.active == 0, "%u, %u run", runs.active, red.turn.active);
    end(&many[0], 10);
    expect(runs.active == 0 && red.turn.active == 0, "%u, %u run", runs.active, red.turn.active);
    expect(red.cpu_ms == 5, "%llu ms", (unsigned long long) red.cpu_ms);
}

/* The time of a checker is charged with the run that it checks, and it is in no list. */
TEST(a_checker_is_neither_counted_nor_charged)
{
    begin();
    room = 1;
    many[0] = (struct run){
        .runs = &runs, .account = &red, .kind = &run_kind_oneshot, .is_checker = true
    };
    runs_enqueue(&many[0]);
    many[0].leased_us = 1;
    many[0].counters.cpu_us = 5000;
    end(&many[0], 10);
    expect(runs.kept == 0 && runs.kept_bytes == 0 && red.runs == 0 && red.cpu_ms == 0,
           "%u kept, %llu runs", runs.kept, (unsigned long long) red.runs);
    expect(runs.active == 0 && red.turn.active == 0, "its turn is over");
}

static void expect_submit_refused(enum error_code code, const char *word)
{
    error err;
    struct run *none;
    struct run_request *request = calloc(1, sizeof *request);
    require(request, "memory");
    request->account = &red;
    int result = runs_submit(&runs, request, &none, &err);
    expect(result < 0 && err.code == (int32_t) code && strstr(err.text, word), "'%s': %d, %s", word,
           result, result < 0 ? err.text : "");
}

TEST(a_request_is_refused_before_anything_is_made_of_it)
{
    begin();
    runs.is_closing = true;
    expect_submit_refused(ERR_UNAVAILABLE, "ending");
    runs.is_closing = false;
    spawner.is_open = false;
    expect_submit_refused(ERR_UNAVAILABLE, "spawner");
    spawner.is_open = true;
    enqueue(3, &blue);
    expect_submit_refused(ERR_BUSY, "3 runs wait");
    expect(red.refused == 1 && red.retry_s == 1, "%llu refused", (unsigned long long) red.refused);
    expect(made == 0, "%u runs were made", made);
    runs.queued_max = 4;
    runs.overload = (struct overload){ 0 };
    struct run_request request = { .account = &red };
    struct run *ret_run;
    error err;
    expect(runs_submit(&runs, &request, &ret_run, &err) < 0 && made == 1, "it is not full");
}

static void count_left(struct run *run)
{
    run->number = 77;
}

/* If an approval was requested, the approval stage gives the reason. */
TEST(a_run_that_the_check_alone_has_refused_says_what_was_found)
{
    static const struct run_kind kind = { .leave_queue = count_left };
    begin();
    many[0] = (struct run){ .runs = &runs, .kind = &kind };
    run_reject(&many[0]);
    expect(refused == 1 && many[0].evidence.denied && many[0].number == 77, "%u refused", refused);
    many[0] = (struct run){ .runs = &runs, .kind = &kind, .fault.code = ERR_BUSY };
    many[0].evidence.pending = true;
    run_reject(&many[0]);
    expect(refused == 1 && !many[0].evidence.denied && many[0].number == 77, "%u refused", refused);
}

static unsigned checks, asks;

static void check_later(struct run *run, const struct run_request *request, bool is_cell,
                        void (*done)(struct run *run))
{
    (void) request;
    (void) is_cell;
    run->check_told = done;
    checks++;
}

/* No approval can be requested for runs of this tenant. */
static int ask(struct run *run, const struct run_request *request, error *err)
{
    (void) request;
    asks++;
    if (run->account == &blue)
        return fail(err, ERR_UNAVAILABLE, "nobody can be asked");
    run->evidence.pending = true;
    return 0;
}

static const struct run_kind submitted_kind = { .leave_queue = count_left };
static const struct run_stages stages = { .check = check_later, .ask = ask };

static int submit(const struct policy *policy, struct account *account)
{
    static struct run_request request;
    struct run *run;
    error err;
    begin();
    checks = asks = 0;
    runs.stages = &stages;
    request.account = account;
    next_made = &many[0];
    many[0] = (struct run){ .runs = &runs,
                            .account = account,
                            .kind = &submitted_kind,
                            .request = &request,
                            .plan.policy = policy };
    return runs_submit(&runs, &request, &run, &err);
}

TEST(a_run_waits_for_its_turn_after_its_check_and_its_approval)
{
    static const struct policy plain = { .name = "plain" };
    static const struct policy asking = { .name = "asking", .approval.when = 1 };
    static const struct policy checked = { .name = "checked",
                                           .approval.when = 1,
                                           .precheck.is_on = true };

    expect(submit(&plain, &red) == 0 && asks == 0 && checks == 0 && runs.queued == 1,
           "%u asked, %u checked, %u wait", asks, checks, runs.queued);
    expect(red.rate.runs < 0 && runs.newest == &many[0], "it counts as begun, and is known");

    expect(submit(&asking, &red) == 0 && asks == 1 && runs.queued == 0 && many[0].number == 77,
           "%u asked, %u wait", asks, runs.queued);

    expect(submit(&asking, &blue) < 0 && freed == 1 && !runs.newest && blue.rate.runs == 0,
           "%u dropped", freed);

    expect(submit(&checked, &red) == 0 && checks == 1 && asks == 0 && runs.queued == 0,
           "%u checked, %u asked, %u wait", checks, asks, runs.queued);
}

TEST(a_run_is_found_by_keys_of_its_tenant_only)
{
    begin();
    (void) add(&many[0], &red, "run_1");
    (void) add(&many[1], &blue, "run_2");
    expect(runs_find(&runs, &red, "run_1") == &many[0], "its own");
    expect(!runs_find(&runs, &blue, "run_1"), "another tenant's");
    expect(!runs_find(&runs, &accounts.local, "run_2"), "the owner of the daemon");
    expect(!runs_find(&runs, &red, "run_3"), "has no tenant");
}

TEST(the_oldest_ended_run_without_reader_is_dropped)
{
    enum { ENDED = KEPT_MAX + 2 };
    struct run_listener listener = { .next = NULL };
    begin();
    (void) add(&many[0], &red, "under way");
    for (unsigned i = 1; i <= ENDED; i++)
        end(add(&many[i], &red, "1"), 10);
    expect(freed == 1 && last_freed == &many[1], "%u are forgotten", freed);
    many[2].listeners = &listener;
    (void) add(&many[ENDED + 1], &red, "1");
    expect(freed == 2 && last_freed == &many[3], "%u are forgotten", freed);
    expect(runs.kept == KEPT_MAX && runs.kept_bytes == (size_t) KEPT_MAX * 10, "%u kept, %zu bytes",
           runs.kept, runs.kept_bytes);
    expect(runs.oldest == &many[0] && many[0].newer == &many[2] && many[2].newer == &many[4],
           "the list has a hole");
}

static void count_release(void *context)
{
    ++*(unsigned *) context;
}

/* 64 MiB are kept without readers, 128 MiB with readers. */
TEST(the_oldest_readers_are_cut_off_when_results_take_too_much)
{
    unsigned released[4] = { 0 };
    struct run_listener listeners[4];
    begin();
    for (unsigned i = 0; i < 4; i++) {
        listeners[i] = (struct run_listener){ .context = &released[i], .release = count_release };
        (void) add(&many[i], &red, "1");
        many[i].listeners = &listeners[i];
        end(&many[i], (size_t) 40 * MIB);
    }
    (void) add(&many[4], &red, "1");
    expect(released[0] == 1 && released[1] == 0 && released[2] == 0 && released[3] == 0,
           "%u %u %u %u", released[0], released[1], released[2], released[3]);
    expect(freed == 0, "%u are forgotten while somebody reads", freed);
}

TEST(the_newest_detached_runs_keep_their_output)
{
    begin();
    for (unsigned i = 0; i <= WHOLE_MAX; i++) {
        (void) add(&many[i], &red, "1");
        run_detach(&many[i]);
        many[i].has_harvest = true;
        end(&many[i], 10);
    }
    expect(!many[0].is_detached && many[1].is_detached && many[WHOLE_MAX].is_detached, "%d %d",
           many[0].is_detached, many[1].is_detached);
    many[1].is_detached = false;
    run_detach(&many[1]);
    expect(!many[1].is_detached, "one that has ended is not detached any more");
}

TESTS(CASE(runs_of_one_key_begin_in_the_order_in_which_they_came),
      CASE(a_key_with_many_runs_does_not_delay_another_key),
      CASE(a_run_that_is_cancelled_while_it_waits_leaves_the_queue),
      CASE(a_run_that_has_left_its_sandbox_gives_its_turn_back_once),
      CASE(a_checker_is_neither_counted_nor_charged),
      CASE(a_request_is_refused_before_anything_is_made_of_it),
      CASE(a_run_that_the_check_alone_has_refused_says_what_was_found),
      CASE(a_run_waits_for_its_turn_after_its_check_and_its_approval),
      CASE(a_run_is_found_by_keys_of_its_tenant_only),
      CASE(the_oldest_ended_run_without_reader_is_dropped),
      CASE(the_oldest_readers_are_cut_off_when_results_take_too_much),
      CASE(the_newest_detached_runs_keep_their_output))
