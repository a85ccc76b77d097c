/* top_view.c - tables of numbers, and suggestions made from them. */
#include "cli/operate/top.h"

#include "base/table.h"
#include "base/utf8.h"
#include "cli/daemon_request.h"
#include "json/member.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_MIN = 5, OFTEN_PERCENT = 20 };

/* A page with a limited number of lines: more are counted, not printed; long ones are cut. */
struct page {
    int left, hidden;
    size_t columns; /* 0: any width */
};

static void line(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct page *page, const char *format, ...)
{
    if (page->left == 0) {
        page->hidden++;
        return;
    }
    page->left -= page->left > 0;
    char shown[1024];
    va_list values;
    va_start(values, format);
    (void) vsnprintf(shown, sizeof shown, format, values);
    va_end(values);
    size_t size = strlen(shown);
    if (page->columns > 0 && size > page->columns)
        size = page->columns - utf8_cut_at_end(shown, page->columns);
    (void) printf("%.*s\n", (int) size, shown);
}

static const char *text(json_object *object, const char *name)
{
    const char *found = answer_text(object, name);
    return *found ? found : "-";
}

static size_t length_of(json_object *array)
{
    return array ? json_object_array_length(array) : 0;
}

/* Returns the same key in the answer before. */
static json_object *same_key(json_object *before, json_object *key)
{
    json_object *keys = before ? json_member(before, "keys") : NULL;
    for (size_t i = 0; i < length_of(keys); i++) {
        json_object *other = json_object_array_get_idx(keys, i);
        if (strcmp(text(other, "id"), text(key, "id")) == 0)
            return other;
    }
    return NULL;
}

static void print_hits(json_object *hits, char *list, size_t size)
{
    size_t used = 0;
    (void) snprintf(list, size, "-");
    if (!hits)
        return;
    json_object_object_foreach(hits, name, value)
    {
        if (used < size)
            used += (size_t) snprintf(list + used, size - used, "%s%s %lld", used > 0 ? ", " : "",
                                      name, (long long) json_object_get_int64(value));
    }
}

static void print_keys(struct page *page, json_object *now, json_object *before, double seconds)
{
    json_object *keys = json_member(now, "keys");
    line(page, "%-17s %-14s %-16s %6s %6s %8s %7s %7s %9s  %s", "KEY", "NAME", "TENANT", "ACTIVE",
         "QUEUED", "RUNS", "RUNS/s", "REFUSED", "CPU s", "LIMITS HIT");
    for (size_t i = 0; i < length_of(keys); i++) {
        json_object *key = json_object_array_get_idx(keys, i);
        json_object *last = same_key(before, key);
        char hits[96], rate[16] = "-";
        print_hits(json_member(key, "limit_hits"), hits, sizeof hits);
        if (last && seconds > 0)
            (void) snprintf(rate, sizeof rate, "%.1f",
                            (double) (member_number(key, "runs") - member_number(last, "runs")) /
                                seconds);
        line(page, "%-17.17s %-14.14s %-16.16s %6lld %6lld %8lld %7s %7lld %9.1f  %s",
             text(key, "id"), text(key, "name"), text(key, "tenant"),
             (long long) member_number(key, "active"), (long long) member_number(key, "queued"),
             (long long) member_number(key, "runs"), rate,
             (long long) member_number(key, "refused"),
             (double) member_number(key, "cpu_ms") / 1000, hits);
    }
}

/* Pools that look the same here differ only in the shape of their policies; they share a row. */
static bool is_same_pool(json_object *a, json_object *b)
{
    return strcmp(text(a, "template"), text(b, "template")) == 0 &&
           strcmp(text(a, "set"), text(b, "set")) == 0 &&
           member_number(a, "tenant") == member_number(b, "tenant") &&
           member_number(a, "memory_bytes") == member_number(b, "memory_bytes");
}

static void print_pools(struct page *page, json_object *now)
{
    static const char *const sums[] = { "parked", "building", "target", "per_second" };
    json_object *pools = json_member(now, "pools");
    line(page, "%-17s %-10s %7s %8s %7s %9s %7s %7s", "TEMPLATE", "IMPORTS", "TENANT", "MEMORY",
         "PARKED", "BUILDING", "TARGET", "RUNS/s");
    for (size_t i = 0; i < length_of(pools); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        int64_t total[COUNT_OF(sums)] = { 0 };
        size_t first = 0;
        while (!is_same_pool(json_object_array_get_idx(pools, first), pool))
            first++;
        if (first < i)
            continue;
        for (size_t other = i; other < length_of(pools); other++)
            for (size_t sum = 0; sum < COUNT_OF(sums); sum++)
                if (is_same_pool(json_object_array_get_idx(pools, other), pool))
                    total[sum] += member_number(json_object_array_get_idx(pools, other), sums[sum]);
        line(page, "%-17.17s %-10.10s %7lld %4lld MiB %7lld %9lld %7lld %7lld",
             text(pool, "template"), text(pool, "set_name"),
             (long long) member_number(pool, "tenant"),
             (long long) member_number(pool, "memory_bytes") >> 20, (long long) total[0],
             (long long) total[1], (long long) total[2], (long long) total[3]);
    }
}

static void print_sessions(struct page *page, json_object *sessions)
{
    if (length_of(sessions) == 0)
        return;
    line(page, "%s", "");
    line(page, "%-36s %-8s %-10s %-10s %6s %9s %9s  %s", "SESSION", "STATE", "POLICY", "TEMPLATE",
         "CELLS", "PEAK", "CPU s", "ENDS WHEN IDLE");
    for (size_t i = 0; i < length_of(sessions); i++) {
        json_object *session = json_object_array_get_idx(sessions, i);
        json_object *usage = json_member(session, "usage");
        line(page, "%-36.36s %-8.8s %-10.10s %-10.10s %6lld %5lld MiB %9.1f  %s",
             text(session, "id"), text(session, "state"),
             text(json_member(session, "policy"), "name"),
             text(json_member(session, "template"), "name"),
             (long long) member_number(usage, "cells"),
             (long long) member_number(usage, "memory_peak_bytes") >> 20,
             (double) member_number(usage, "cpu_ms") / 1000, text(session, "idle_at"));
    }
}

/* Suggests a higher limit for keys that reach one repeatedly, with the numbers. */
static void suggest_limits(struct page *page, json_object *key)
{
    int64_t runs = member_number(key, "runs");
    json_object *hits = json_member(key, "limit_hits");
    const char *name = strcmp(text(key, "id"), "-") == 0 ? "the owner" : text(key, "id");
    if (runs < RUNS_MIN || !hits)
        return;
    json_object_object_foreach(hits, limit, value)
    {
        int64_t times = json_object_get_int64(value), percent = times * 100 / runs;
        if (percent >= OFTEN_PERCENT)
            line(page,
                 "  %s of %s: %lld of %lld runs (%lld %%) hit it; if that is ordinary work the "
                 "limit "
                 "is too tight: raise it in the policy, or ask for more with each run",
                 limit, name, (long long) times, (long long) runs, (long long) percent);
    }
}

static void suggest_quotas(struct page *page, json_object *key)
{
    int64_t refused = member_number(key, "refused"), runs = member_number(key, "runs"),
            asked = refused + runs;
    const char *name = strcmp(text(key, "id"), "-") == 0 ? "the owner" : text(key, "id");
    if (refused > 0 && asked >= RUNS_MIN && refused * 100 / asked >= OFTEN_PERCENT)
        line(page,
             "  quota of %s: %lld of %lld runs (%lld %%) were refused; it may start %lld a minute "
             "(0: no bound) and have %lld at once (0: its share of the slots)",
             name, (long long) refused, (long long) asked, (long long) (refused * 100 / asked),
             (long long) member_number(key, "runs_per_minute"),
             (long long) member_number(key, "concurrency"));
    int64_t day_ms = member_number(key, "cpu_seconds_per_day") * 1000;
    if (day_ms > 0 && member_number(key, "cpu_ms_today") * 100 / day_ms >= 80)
        line(page, "  processor time of %s: %lld of %lld s of today are used", name,
             (long long) member_number(key, "cpu_ms_today") / 1000, (long long) day_ms / 1000);
    if (runs >= RUNS_MIN && member_number(key, "built") * 100 / runs >= 50)
        line(page,
             "  pool of %s: %lld of %lld runs found no sandbox ready; raise pool_max, or slots",
             name, (long long) member_number(key, "built"), (long long) runs);
}

void top_print(json_object *now, json_object *before, double seconds, const struct winsize *window)
{
    int rows = window ? window->ws_row - 1 : 0; /* the cursor needs the last one */
    struct page page = { .left = rows > 0 ? rows : -1, .columns = window ? window->ws_col : 0 };
    line(&page,
         "glovebox %s%s   slots %lld of %lld in use, %lld parked, %lld being built   runs %lld "
         "active, %lld of %lld queued   sessions %lld",
         text(now, "version"),
         json_object_get_boolean(json_member(now, "closing")) ? " (leaving)" : "",
         (long long) member_number(now, "in_use"), (long long) member_number(now, "slots"),
         (long long) member_number(now, "parked"), (long long) member_number(now, "building"),
         (long long) member_number(now, "active"), (long long) member_number(now, "queued"),
         (long long) member_number(now, "queue"), (long long) member_number(now, "sessions"));
    line(&page, "%s", "");
    print_keys(&page, now, before, seconds);
    line(&page, "%s", "");
    print_pools(&page, now);
    print_sessions(&page, json_member(now, "live"));
    line(&page, "%s", "");
    json_object *keys = json_member(now, "keys");
    struct page suggestions = page;
    for (size_t i = 0; i < length_of(keys); i++) {
        suggest_limits(&suggestions, json_object_array_get_idx(keys, i));
        suggest_quotas(&suggestions, json_object_array_get_idx(keys, i));
    }
    if (suggestions.hidden > 0 && rows > 0)
        (void) printf("… %d more lines: glovebox top --once\n", suggestions.hidden);
}
