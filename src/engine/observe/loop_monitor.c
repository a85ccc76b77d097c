/* loop_monitor.c - the spans of one turn; only the longest is kept. */
#include "engine/observe/loop_monitor.h"

#include "base/clock.h"
#include "engine/observe/log.h"
#include "engine/observe/log_writer.h"
#include "engine/observe/metrics.h"

#include <sys/resource.h>

enum { SLOW_US = 20000, STALL_US = 50000, TELL_EVERY_US = 1000000 };

static struct turn_of_loop {
    int64_t began_us;   /* 0: no turn */
    struct rusage used; /* by this thread at the beginning */
    int64_t since_us;   /* beginning of the current span */
    struct loop_place place;
    int64_t longest_us;
    struct loop_place longest;
} turn;

static uint64_t number = 1;
static bool is_closed;
static int64_t told_us;
static uint64_t untold;
static uv_prepare_t prepare;
static uv_check_t check;

const char *loop_cause_name(unsigned cause)
{
    static const char *const names[] = {
#define CAUSE(name, word) [CAUSE_##name] = (word),
#include "engine/observe/loop_causes.def"
    };
    return names[cause];
}

static void end_span(int64_t now)
{
    int64_t took = now - turn.since_us;
    if (took > turn.longest_us || turn.longest_us == 0) {
        turn.longest_us = took;
        turn.longest = turn.place;
    }
    turn.since_us = now;
}

static void say(enum loop_cause cause, const char *what)
{
    int64_t now = now_us();
    if (turn.began_us == 0) {
        turn.began_us = turn.since_us = now;
        (void) getrusage(RUSAGE_THREAD, &turn.used);
    } else {
        end_span(now);
    }
    turn.place = (struct loop_place){ cause, what };
}

struct loop_place loop_enter(enum loop_cause cause, const char *what)
{
    struct loop_place before = turn.place;
    say(cause, what);
    return before;
}

void loop_leave(struct loop_place place)
{
    say(place.cause, place.what);
}

int64_t loop_turn_us(void)
{
    return turn.began_us == 0 || is_closed ? 0 : turn.since_us - turn.began_us;
}

uint64_t loop_turn_number(void)
{
    return is_closed ? ++number : number; /* without a monitor each call gets a new number */
}

static int64_t cpu_us(const struct rusage *used)
{
    return (used->ru_utime.tv_sec + used->ru_stime.tv_sec) * 1000000 + used->ru_utime.tv_usec +
           used->ru_stime.tv_usec;
}

/* True if no callback is to blame: the thread was ready to run for most of the time, and other
 * threads had the processors. */
static bool was_put_off(int64_t took_us)
{
    struct rusage used = turn.used;
    (void) getrusage(RUSAGE_THREAD, &used);
    return used.ru_nvcsw == turn.used.ru_nvcsw && cpu_us(&used) - cpu_us(&turn.used) < took_us / 2;
}

static void tell_slow(int64_t now, int64_t took_us)
{
    if (was_put_off(took_us))
        turn.longest = (struct loop_place){ CAUSE_PROCESSOR, NULL };
    metric_add(METRIC_LOOP_SLOW, turn.longest.cause, 1);
    metric_add(METRIC_LOOP_STALLS, turn.longest.cause, took_us > STALL_US);
    if (told_us != 0 && now - told_us < TELL_EVERY_US) {
        untold++;
        return;
    }
    told_us = now;
    log_event(LOOP_SLOW, COUNT("ms", took_us / 1000),
              TEXT("cause", loop_cause_name(turn.longest.cause)),
              TEXT("what", turn.longest.what ? turn.longest.what : ""),
              COUNT("its_ms", turn.longest_us / 1000), COUNT("untold", untold));
    untold = 0;
}

void loop_turn_ends(int64_t now)
{
    if (turn.began_us == 0)
        return;
    end_span(now);
    int64_t took = now - turn.began_us;
    metric_observe(METRIC_LOOP_TURN, 0, took);
    if (took > SLOW_US)
        tell_slow(now, took);
    number++;
    turn = (struct turn_of_loop){ .place.cause = CAUSE_TIMER };
}

static void on_prepare(uv_prepare_t *handle)
{
    (void) handle;
    log_writer_flush();
    loop_turn_ends(now_us());
}

/* Until the next turn, code without a name is counted as timers. */
static void on_check(uv_check_t *handle)
{
    (void) handle;
    say(CAUSE_TIMER, NULL);
}

void loop_monitor_open(uv_loop_t *loop)
{
    (void) uv_prepare_init(loop, &prepare);
    (void) uv_check_init(loop, &check);
    (void) uv_prepare_start(&prepare, on_prepare);
    (void) uv_check_start(&check, on_check);
    uv_unref((uv_handle_t *) &prepare);
    uv_unref((uv_handle_t *) &check);
}

void loop_monitor_close(void)
{
    is_closed = true;
    uv_close((uv_handle_t *) &prepare, NULL);
    uv_close((uv_handle_t *) &check, NULL);
}
