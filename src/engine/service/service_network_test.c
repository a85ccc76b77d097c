/* service_network_test.c - which connections a watcher sees, and how many a slow reader misses. */
#include "base/table.h"
#include "base/test.h"

#include "engine/network/traffic_stats.h"
#include "engine/run/queue.h"
#include "engine/schedule/accounts.h"
#include "engine/service/service_network.h"
#include "engine/service/service_runs.h"

#include <inttypes.h>
#include <string.h>

static struct account ours, theirs;
static struct traffic traffic;
static struct runs runs;
static const struct service service = { .runs = &runs, .traffic = &traffic };
static unsigned woken;

static void wake(void *context)
{
    (void) context;
    woken++;
}

static const struct waker waker = { .woken = wake };

static void begin(void)
{
    memset(&traffic, 0, sizeof traffic);
    memset(&runs, 0, sizeof runs);
    ours = (struct account){ .key = { .id = "key_1", .tenant = "a", .scopes = SCOPE_SESSIONS },
                             .tenant = 1 };
    theirs = (struct account){ .key = { .id = "key_2", .tenant = "b", .scopes = SCOPE_ADMIN },
                               .tenant = 2 };
}

/* `count` ended connections of a source of the account. */
static void note(const struct account *account, const char *id, unsigned count)
{
    struct traffic_source source = { .account = account };
    const struct egress_record record = { .label = EGRESS_NO_LABEL,
                                          .reason = EGRESS_ALLOWED,
                                          .name = "host" };
    (void) snprintf(source.id, sizeof source.id, "%s", id);
    for (unsigned i = 0; i < count; i++)
        traffic_note(&traffic, &source, &record, true);
}

static struct connection_watch *watch_as(struct account *account,
                                         const struct connection_query *query, error *err)
{
    const struct caller caller = { .account = account };
    return service_watch_connections(&service, &caller, query, &waker, err);
}

/* Reads to the end. Gives the numbers of the first and the last. */
static unsigned read_all(struct connection_watch *watch, uint64_t *ret_first, uint64_t *ret_last)
{
    struct connection_event event;
    unsigned count = 0;
    while (connection_watch_next(watch, &event) == WATCH_EVENT && event.missed == 0) {
        *ret_first = count++ == 0 ? event.number : *ret_first;
        *ret_last = event.number;
    }
    return count;
}

TEST(each_is_shown_what_it_may_see_and_asks_for)
{
    static const struct {
        struct account *account;
        struct connection_query query;
        unsigned count;
        uint64_t first, last;
    } facts[] = {
        /* 1 to 5 are ours, 6 and 7 theirs, 8 is ours */
        { &ours, { .last = 512 }, 6, 1, 6 }, /* a gap would tell how many are theirs */
        { &ours, { .last = 2 }, 2, 5, 6 },
        { &ours, { .last = 0 }, 0, 0, 0 },
        { &ours, { .last = 512, .source = "run_2" }, 1, 6, 6 },
        { &ours, { .last = 512, .source = "run_t" }, 0, 0, 0 },
        { &ours, { .last = 1, .has_seen = true, .seen = 3 }, 3, 4, 6 },
        { &ours, { .last = 9, .has_seen = true, .seen = 6 }, 0, 0, 0 },
        { &ours, { .last = 9, .has_seen = true, .seen = UINT64_MAX }, 0, 0, 0 },
        { &theirs, { .last = 512 }, 2, 1, 2 },
        { &theirs, { .last = 9, .has_seen = true, .seen = 1 }, 1, 2, 2 },
        { &theirs, { .last = 512, .sees_all = true }, 8, 1, 8 },
    };
    begin();
    note(&ours, "run_1", 5);
    note(&theirs, "run_t", 2);
    note(&ours, "run_2", 1);
    for_each(fact, facts) {
        uint64_t first = 0, last = 0;
        struct connection_event event;
        error err;
        struct connection_watch *watch = watch_as(fact->account, &fact->query, &err);
        require(watch, "%s", err.text);
        unsigned count = read_all(watch, &first, &last);
        expect(count == fact->count && first == fact->first && last == fact->last,
               "row %td: %u from %" PRIu64 " to %" PRIu64, fact - facts, count, first, last);
        expect(connection_watch_next(watch, &event) == WATCH_OVER, "it does not follow");
        connection_watch_close(watch);
    }
    traffic_done(&traffic);
}

TEST(what_a_slow_reader_misses_is_counted)
{
    const struct connection_query query = { .follows = true };
    struct connection_event event;
    uint64_t first = 0, last = 0;
    error err;
    begin();
    struct connection_watch *watch = watch_as(&ours, &query, &err);
    require(watch, "%s", err.text);
    expect(connection_watch_next(watch, &event) == WATCH_LATER, "nothing has come");
    note(&ours, "run_1", CONNECTIONS_KEPT + 3);
    expect(connection_watch_next(watch, &event) == WATCH_EVENT && event.missed == 3,
           "%" PRIu64 " are missed", event.missed);
    expect(read_all(watch, &first, &last) == CONNECTIONS_KEPT && first == 4, "from %" PRIu64,
           first);
    expect(connection_watch_next(watch, &event) == WATCH_LATER, "it follows");
    runs.is_closing = true;
    expect(connection_watch_next(watch, &event) == WATCH_OVER, "the daemon leaves");
    connection_watch_close(watch);
    traffic_done(&traffic);
}

/* Connections of other tenants push ours out of the ring. */
TEST(only_its_own_are_missed)
{
    const struct connection_query after[] = { { .has_seen = true },
                                              { .has_seen = true, .seen = 3 } };
    static const uint64_t missed[][2] = { { 2, 5 }, { 0, 2 } };
    struct connection_event event;
    uint64_t first = 0, last = 0;
    error err;
    begin();
    note(&ours, "run_1", 5);
    note(&theirs, "run_t", CONNECTIONS_KEPT - 3);
    for (unsigned all = 0; all < 2; all++, note(&theirs, "run_t", CONNECTIONS_KEPT))
        for (unsigned i = 0; i < 2; i++) {
            struct connection_watch *watch = watch_as(&ours, &after[i], &err);
            require(watch, "%s", err.text);
            uint64_t lost = missed[i][all];
            if (lost > 0)
                expect(connection_watch_next(watch, &event) == WATCH_EVENT && event.missed == lost,
                       "%" PRIu64 " are missed, not %" PRIu64, event.missed, lost);
            unsigned count = read_all(watch, &first, &last);
            expect(count == 5 - after[i].seen - lost && (count == 0 || last == 5), "%u come",
                   count);
            expect(connection_watch_next(watch, &event) == WATCH_OVER, "and no more");
            connection_watch_close(watch);
        }
    traffic_done(&traffic);
}

TEST(a_watcher_is_woken_until_it_is_closed)
{
    const struct connection_query query = { .follows = true };
    error err;
    begin();
    struct connection_watch *watch = watch_as(&ours, &query, &err);
    require(watch, "%s", err.text);
    woken = 0;
    traffic_tell(&traffic);
    expect(woken == 1, "%u", woken);
    connection_watch_close(watch);
    traffic_tell(&traffic);
    expect(woken == 1, "%u", woken);
    traffic_done(&traffic);
}

TEST(queries_that_may_not_be_are_refused)
{
    char source[TRAFFIC_SOURCE_SIZE + 1];
    const struct connection_query all = { .sees_all = true }, long_id = { .source = source };
    error err;
    begin();
    memset(source, 'x', sizeof source - 1);
    source[sizeof source - 1] = '\0';
    expect(!watch_as(&ours, &all, &err) && err.code == ERR_FORBIDDEN, "%s", err.text);
    expect(!watch_as(&ours, &long_id, &err) && err.code == ERR_BAD_REQUEST, "%s", err.text);
    expect(!traffic.listeners, "nobody is left behind");
}

TESTS(CASE(each_is_shown_what_it_may_see_and_asks_for), CASE(what_a_slow_reader_misses_is_counted),
      CASE(only_its_own_are_missed), CASE(a_watcher_is_woken_until_it_is_closed),
      CASE(queries_that_may_not_be_are_refused))
