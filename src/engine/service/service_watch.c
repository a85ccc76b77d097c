/* service_watch.c - follows a run: a watch is a set of positions in what the run keeps. */
#include "base/utf8.h"
#include "engine/run/run.h"
#include "engine/service/service_watch_internal.h"
#include "json/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 12 * 1024 };

struct watch {
    struct run *run; /* NULL: it was lost */
    char lost_id[RUN_ID_SIZE];
    struct bytes lost_result;
    struct watcher watcher;
    struct run_listener listener;

    bool gave_started, gave_error, gave_end;
    uint64_t output_at[2]; /* in head, marker and tail together */
    size_t denial_at, artifact_at, result_at;
    struct bytes scratch; /* the last event, if it is not a part of what the run keeps */
};

/* --- its life --------------------------------------------------------------------------------- */

static void on_changed(void *context, struct run *run)
{
    (void) run;
    const struct watch *watch = context;
    watch->watcher.woken(watch->watcher.context);
}

static void on_release(void *context)
{
    const struct watch *watch = context;
    watch->watcher.cut(watch->watcher.context);
}

struct watch *watch_open(struct run *run, const struct watcher *watcher, error *err)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        (void) fail(err, ERR_SYSTEM, "no memory to wait for a run");
        return NULL;
    }
    watch->run = run;
    watch->watcher = *watcher;
    watch->listener =
        (struct run_listener){ .context = watch, .changed = on_changed, .release = on_release };
    run_listen(run, &watch->listener);
    if (watcher->hangup == HANGUP_DETACHES)
        run_detach(run);
    return watch;
}

struct watch *watch_open_lost(const char *id, struct bytes *result, error *err)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch) {
        bytes_done(result);
        (void) fail(err, ERR_SYSTEM, "no memory to tell of a run");
        return NULL;
    }
    memcpy(watch->lost_id, id, strnlen(id, sizeof watch->lost_id - 1));
    watch->lost_result = *result;
    *result = (struct bytes){ 0 };
    return watch;
}

void watch_close(struct watch *watch)
{
    struct run *run = watch->run;
    bool is_unwanted = watch->watcher.hangup == HANGUP_CANCELS && !watch_is_over(watch);
    if (run)
        run_unlisten(run, &watch->listener);
    bytes_done(&watch->scratch);
    bytes_done(&watch->lost_result);
    free(watch);
    if (is_unwanted)
        run_cancel(run);
}

void watch_let_run(struct watch *watch)
{
    watch->watcher.hangup = HANGUP_LEAVES;
}

void watch_cancel(struct watch *watch)
{
    if (watch->run)
        run_cancel(watch->run);
}

const char *watch_id(const struct watch *watch)
{
    return watch->run ? watch->run->id : watch->lost_id;
}

const char *watch_state(const struct watch *watch)
{
    return run_state_name(watch->run ? run_state_shown(watch->run) : RUN_DONE);
}

bool watch_usage(const struct watch *watch, uint64_t *ret_cpu_us, uint64_t *ret_memory_bytes)
{
    const struct run *run = watch->run;
    struct counters counters;
    if (!run || run->state != RUN_RUNNING)
        return false;
    counters_read(run->kind->groups(run), &counters);
    counters_subtract(&counters, &run->counters_before);
    *ret_cpu_us = counters.cpu_us;
    *ret_memory_bytes = counters.memory_peak_bytes;
    return true;
}

bool watch_is_over(const struct watch *watch)
{
    return !watch->run || watch->run->state == RUN_DONE;
}

bool watch_is_lost(const struct watch *watch)
{
    return !watch->run;
}

enum run_status watch_status(const struct watch *watch)
{
    return watch->run ? watch->run->verdict.status : RUN_LOST;
}

const struct bytes *watch_result(const struct watch *watch)
{
    return watch->run ? &watch->run->result : &watch->lost_result;
}

enum { GAVE_STARTED = 1, GAVE_ERROR = 2, GAVE_END = 4 };

/* Flags, stdout, stderr, results, denials, artifacts. */
void watch_position(const struct watch *watch, char ret_position[WATCH_POSITION_SIZE])
{
    unsigned gave = (watch->gave_started ? GAVE_STARTED : 0U) |
                    (watch->gave_error ? GAVE_ERROR : 0U) | (watch->gave_end ? GAVE_END : 0U);
    (void) snprintf(ret_position, WATCH_POSITION_SIZE, "%u-%" PRIu64 "-%" PRIu64 "-%zu-%zu-%zu",
                    gave, watch->output_at[0], watch->output_at[1], watch->result_at,
                    watch->denial_at, watch->artifact_at);
}

int watch_seek(struct watch *watch, const char *position, error *err)
{
    enum { FIELDS = 6 };
    uint64_t at[FIELDS];
    const char *text = position;
    for (int i = 0; i < FIELDS; i++) {
        char *stop = NULL;
        errno = 0;
        if (*text >= '0' && *text <= '9')
            at[i] = strtoull(text, &stop, 10);
        if (!stop || errno != 0 || at[i] > SIZE_MAX / 2 || *stop != (i + 1 < FIELDS ? '-' : '\0'))
            return fail(err, ERR_BAD_REQUEST, "'%.60s' is not the id of an event of a run",
                        position);
        text = stop + 1;
    }
    watch->gave_started = at[0] & GAVE_STARTED;
    watch->gave_error = at[0] & GAVE_ERROR;
    watch->gave_end = at[0] & GAVE_END;
    watch->output_at[0] = at[1];
    watch->output_at[1] = at[2];
    watch->result_at = at[3];
    watch->denial_at = at[4];
    watch->artifact_at = at[5];
    return 0;
}

/* --- events ----------------------------------------------------------------------------------- */

const char *run_event_name(enum run_event_kind kind)
{
    static const char *const names[EVENT_KINDS] = {
        [EVENT_STARTED] = "started", [EVENT_STDOUT] = "stdout", [EVENT_STDERR] = "stderr",
        [EVENT_RESULT] = "result",   [EVENT_DENIAL] = "denial", [EVENT_ARTIFACT] = "artifact",
        [EVENT_ERROR] = "error",     [EVENT_END] = "end",
    };
    return names[kind];
}

static bool give(struct run_event *event, enum run_event_kind kind, const struct bytes *in)
{
    *event = (struct run_event){ kind, in, 0, in->size };
    return true;
}

static bool give_started(struct watch *watch, struct run_event *event)
{
    if (watch->gave_started || watch->run->started_us == 0)
        return false;
    watch->gave_started = true;
    json_open(&watch->scratch, '{');
    json_string_field(&watch->scratch, "id", watch->run->id);
    json_close(&watch->scratch, '}');
    return give(event, EVENT_STARTED, &watch->scratch);
}

/* Copies from several parts as if they were one. */
static size_t copy_parts(const struct output_part *parts, size_t count, uint64_t from, char *block,
                         size_t size)
{
    size_t copied = 0;
    for (size_t i = 0; i < count && copied < size; i++) {
        if (from >= parts[i].size) {
            from -= parts[i].size;
            continue;
        }
        size_t here = parts[i].size - (size_t) from;
        if (here > size - copied)
            here = size - copied;
        memcpy(block + copied, parts[i].data + from, here);
        copied += here;
        from = 0;
    }
    return copied;
}

static bool give_output(struct watch *watch, enum run_event_kind kind, struct run_event *event)
{
    unsigned index = kind == EVENT_STDERR;
    bool is_final = watch->run->state == RUN_DONE;
    char marker[OUTPUT_MARKER_MAX];
    struct output_part parts[OUTPUT_PARTS];
    output_parts(&watch->run->collector.output[index], run_event_name(kind), marker, parts);

    char block[BLOCK];
    size_t size = copy_parts(parts, is_final ? OUTPUT_PARTS : 1, watch->output_at[index], block,
                             sizeof block);
    size_t cut = utf8_cut_at_end(block, size);
    if (cut > 0 && (size == sizeof block || !is_final))
        size -= cut; /* the rest of the character follows in the next event */
    if (size == 0)
        return false;
    watch->output_at[index] += size;
    bytes_add(&watch->scratch, block, size);
    return give(event, kind, &watch->scratch);
}

static bool give_result(struct watch *watch, struct run_event *event)
{
    const struct bytes *results = &watch->run->collector.results;
    if (watch->result_at >= results->size)
        return false;
    const char *from = results->data + watch->result_at;
    size_t left = results->size - watch->result_at;
    if (left >= 2 && from[0] == ',' && from[1] == '\t') { /* skips the separator */
        watch->result_at += 2;
        from += 2;
        left -= 2;
    }
    const char *tab = memchr(from, '\t', left);
    size_t size = tab ? (size_t) (tab - from) : left;
    if (tab && size > 0) /* an invented position may be that of the tab */
        size--;          /* without the comma */
    *event = (struct run_event){ EVENT_RESULT, results, watch->result_at, size };
    watch->result_at += tab ? (size_t) (tab - from) + 1 : left;
    return true;
}

static bool give_denial(struct watch *watch, struct run_event *event)
{
    const struct denials *denials = &watch->run->collector.denials;
    if (watch->denial_at >= denials->count)
        return false;
    result_write_denial(&denials->rows[watch->denial_at++], &watch->scratch);
    return give(event, EVENT_DENIAL, &watch->scratch);
}

static bool give_artifact(struct watch *watch, struct run_event *event)
{
    const struct collector *collector = &watch->run->collector;
    if (watch->artifact_at >= collector->kept)
        return false;
    result_write_artifact(&collector->artifacts[watch->artifact_at++], &watch->scratch);
    return give(event, EVENT_ARTIFACT, &watch->scratch);
}

/* Copied, since a second error of the program replaces the first. */
static bool give_error(struct watch *watch, struct run_event *event)
{
    const struct bytes *failure = &watch->run->collector.failure;
    if (watch->gave_error || failure->size == 0)
        return false;
    watch->gave_error = true;
    bytes_add(&watch->scratch, failure->data, failure->size);
    return give(event, EVENT_ERROR, &watch->scratch);
}

/* What the policy withholds is not in events before the check has passed. */
static bool give_collected(struct watch *watch, struct run_event *event)
{
    if (output_check_holds(watch->run))
        return watch->run->state == RUN_DONE && give_denial(watch, event);
    return give_output(watch, EVENT_STDOUT, event) || give_output(watch, EVENT_STDERR, event) ||
           give_result(watch, event) || give_denial(watch, event) || give_artifact(watch, event) ||
           give_error(watch, event);
}

/* Before the end only if the log has the run's beginning; else all events come after the
 * receipt. */
static bool may_give(const struct watch *watch)
{
    struct run *run = watch->run;
    error unsaid;
    if (!run || !run->has_harvest)
        return false;
    return run->state == RUN_DONE || (run->started_us != 0 && run_tell_began(run, &unsaid) == 0);
}

int watch_next(struct watch *watch, struct run_event *ret_event)
{
    watch->scratch.size = 0;
    if (may_give(watch) && (give_started(watch, ret_event) || give_collected(watch, ret_event)))
        return WATCH_EVENT;
    if (watch->gave_end)
        return WATCH_OVER;
    if (!watch_is_over(watch))
        return WATCH_LATER;
    watch->gave_end = true;
    (void) give(ret_event, EVENT_END, watch_result(watch));
    return WATCH_EVENT;
}
