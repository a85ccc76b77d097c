/* top_view.c - tables of numbers, and what they suggest. */
#include "cli/operate/top.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RUNS_MIN = 5, OFTEN_PERCENT = 20 };

/* Lines that are left on the page; the rest is counted, not shown. */
struct page {
    int left;
    int hidden;
};

static void line(struct page *page, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void line(struct page *page, const char *format, ...)
{
    if (page->left == 0) {
        page->hidden++;
        return;
    }
    page->left -= page->left > 0;
    va_list values;
    va_start(values, format);
    (void) vprintf(format, values);
    va_end(values);
    (void) putchar('\n');
}

static int64_t count(json_object *object, const char *name)
{
    json_object *value = NULL;
    return json_object_object_get_ex(object, name, &value) ? json_object_get_int64(value) : 0;
}

static const char *text(json_object *object, const char *name)
{
    json_object *value = NULL;
    const char *found = json_object_object_get_ex(object, name, &value) && value
                            ? json_object_get_string(value)
                            : NULL;
    return found && *found ? found : "-";
}

static json_object *part(json_object *object, const char *name)
{
    json_object *value = NULL;
    (void) json_object_object_get_ex(object, name, &value);
    return value;
}

static size_t length_of(json_object *array)
{
    return array ? json_object_array_length(array) : 0;
}

/* The same key in the answer before. */
static json_object *same_key(json_object *before, json_object *key)
{
    json_object *keys = before ? part(before, "keys") : NULL;
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
    json_object *keys = part(now, "keys");
    line(page, "%-17s %-14s %-14s %6s %6s %8s %7s %7s %9s  %s", "KEY", "NAME", "TENANT", "ACTIVE",
         "QUEUED", "RUNS", "RUNS/s", "REFUSED", "CPU s", "LIMITS HIT");
    for (size_t i = 0; i < length_of(keys); i++) {
        json_object *key = json_object_array_get_idx(keys, i);
        json_object *last = same_key(before, key);
        char hits[96], rate[16] = "-";
        print_hits(part(key, "limit_hits"), hits, sizeof hits);
        if (last && seconds > 0)
            (void) snprintf(rate, sizeof rate, "%.1f",
                            (double) (count(key, "runs") - count(last, "runs")) / seconds);
        line(page, "%-17.17s %-14.14s %-14.14s %6lld %6lld %8lld %7s %7lld %9.1f  %s",
             text(key, "id"), text(key, "name"), text(key, "tenant"),
             (long long) count(key, "active"), (long long) count(key, "queued"),
             (long long) count(key, "runs"), rate, (long long) count(key, "refused"),
             (double) count(key, "cpu_ms") / 1000, hits);
    }
}

static void print_pools(struct page *page, json_object *now)
{
    json_object *pools = part(now, "pools");
    line(page, "%-17s %4s %7s %8s %7s %9s %7s %7s", "TEMPLATE", "SET", "TENANT", "MEMORY", "PARKED",
         "BUILDING", "TARGET", "RUNS/s");
    for (size_t i = 0; i < length_of(pools); i++) {
        json_object *pool = json_object_array_get_idx(pools, i);
        line(page, "%-17.17s %4s %7lld %4lld MiB %7lld %9lld %7lld %7lld", text(pool, "template"),
             text(pool, "set"), (long long) count(pool, "tenant"),
             (long long) count(pool, "memory_bytes") >> 20, (long long) count(pool, "parked"),
             (long long) count(pool, "building"), (long long) count(pool, "target"),
             (long long) count(pool, "per_second"));
    }
}

/* Keys that run into a limit again and again, with the numbers behind it. */
static void suggest_limits(struct page *page, json_object *key)
{
    int64_t runs = count(key, "runs");
    json_object *hits = part(key, "limit_hits");
    const char *name = strcmp(text(key, "id"), "-") == 0 ? "the owner" : text(key, "id");
    if (runs < RUNS_MIN || !hits)
        return;
    json_object_object_foreach(hits, limit, value)
    {
        int64_t times = json_object_get_int64(value);
        int64_t percent = times * 100 / runs;
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
    int64_t refused = count(key, "refused"), runs = count(key, "runs");
    int64_t asked = refused + runs;
    const char *name = strcmp(text(key, "id"), "-") == 0 ? "the owner" : text(key, "id");
    if (refused > 0 && asked >= RUNS_MIN && refused * 100 / asked >= OFTEN_PERCENT)
        line(page,
             "  quota of %s: %lld of %lld runs (%lld %%) were refused; it may start %lld a minute "
             "(0: no bound) and have %lld at once (0: its share of the slots)",
             name, (long long) refused, (long long) asked, (long long) (refused * 100 / asked),
             (long long) count(key, "runs_per_minute"), (long long) count(key, "concurrency"));
    int64_t day_ms = count(key, "cpu_seconds_per_day") * 1000;
    if (day_ms > 0 && count(key, "cpu_ms_today") * 100 / day_ms >= 80)
        line(page, "  processor time of %s: %lld of %lld s of today are used", name,
             (long long) count(key, "cpu_ms_today") / 1000, (long long) day_ms / 1000);
    if (runs >= RUNS_MIN && count(key, "built") * 100 / runs >= 50)
        line(page,
             "  pool of %s: %lld of %lld runs found no sandbox ready; raise pool_max, or slots",
             name, (long long) count(key, "built"), (long long) runs);
}

void top_print(json_object *now, json_object *before, double seconds, int rows)
{
    struct page page = { .left = rows > 0 ? rows : -1 };
    line(&page,
         "glovebox %s%s   slots %lld of %lld in use, %lld parked, %lld being built   runs %lld "
         "active, %lld of %lld queued   sessions %lld",
         text(now, "version"), json_object_get_boolean(part(now, "closing")) ? " (leaving)" : "",
         (long long) count(now, "in_use"), (long long) count(now, "slots"),
         (long long) count(now, "parked"), (long long) count(now, "building"),
         (long long) count(now, "active"), (long long) count(now, "queued"),
         (long long) count(now, "queue"), (long long) count(now, "sessions"));
    line(&page, "%s", "");
    print_keys(&page, now, before, seconds);
    line(&page, "%s", "");
    print_pools(&page, now);
    line(&page, "%s", "");
    json_object *keys = part(now, "keys");
    struct page suggestions = page;
    for (size_t i = 0; i < length_of(keys); i++) {
        suggest_limits(&suggestions, json_object_array_get_idx(keys, i));
        suggest_quotas(&suggestions, json_object_array_get_idx(keys, i));
    }
    if (suggestions.hidden > 0 && rows > 0)
        (void) printf("… %d more lines: glovebox top --once\n", suggestions.hidden);
}
