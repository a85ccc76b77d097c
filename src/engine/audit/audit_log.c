/* audit_log.c - the log of this daemon: completes what the last daemon left open, and writes to
 * disk in groups while runs go on. */
#include "engine/audit/audit_log_internal.h"

#include "base/cleanup.h"
#include "base/read_at.h"
#include "engine/observe/log.h"
#include "engine/observe/loop_monitor.h"
#include "ledger/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

enum {
    FILTER_MAX = 1024 * 1024,
    REPORT_MAX = 64 * 1024,
    LOCK_MAX_MS = 200,
    CHECKPOINT_MAX_MS = 5000,
    RETRY_MS = 1000
};

void fact_hash(const void *data, size_t size, char ret_sha256[SHA256_TEXT_SIZE])
{
    sha256_text_of(data, size, ret_sha256);
}

/* --- facts that do not change ----------------------------------------------------------------- */

static int hash_filter(struct receipts *receipts, const struct receipts_settings *settings,
                       size_t index, error *err)
{
    auto_bytes text = { 0 };
    char *place = bytes_reserve(&text, FILTER_MAX);
    ssize_t got = place ? read_at(settings->filters[index], place, FILTER_MAX, 0) : -1;
    if (got < 0)
        return fail_os(err, "read the seccomp table '%s'", settings->filter_names[index]);
    char sha256[SHA256_TEXT_SIZE];
    fact_hash(place, (size_t) got, sha256);
    (void) snprintf(receipts->digests[index], sizeof receipts->digests[index], "sha256:%s", sha256);
    receipts->names[index] = strdup(settings->filter_names[index]);
    return receipts->names[index] ? 0 : fail(err, ERR_SYSTEM, "no memory for receipts");
}

/* `glovebox doctor` stores its last report beside the log: what was tested, and what failed. */
static void read_self_test(struct receipts *receipts, const char *state)
{
    auto_bytes text = { 0 };
    char path[4096];
    (void) snprintf(path, sizeof path, "%s/self-test.json", state);
    auto_fd file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    struct stat status;
    char *place = file < 0 ? NULL : bytes_reserve(&text, REPORT_MAX);
    ssize_t got = place ? read(file, place, REPORT_MAX) : -1;
    if (got <= 0 || fstat(file, &status) < 0)
        return;
    text.size = (size_t) got;
    fact_hash(text.data, text.size, receipts->self_test);
    receipts->machine.self_test = receipts->self_test;
    receipts->machine.self_test_at_ms = (int64_t) status.st_mtime * 1000;
    const char *checks = strstr(bytes_text(&text), "\"checks\"");
    for (const char *at = checks; at && (at = strstr(at, "\"health\":\"")); at++)
        receipts->machine.self_test_failed += strncmp(at, "\"health\":\"ok\"", 13) != 0;
}

static int learn_machine(struct receipts *receipts, const struct receipts_settings *settings,
                         error *err)
{
    struct utsname names;
    if (uname(&names) < 0)
        return fail_os(err, "ask for the kernel's name");
    (void) snprintf(receipts->kernel, sizeof receipts->kernel, "%.64s %.64s", names.release,
                    names.machine);
    receipts->machine.version = GLOVEBOX_VERSION;
    receipts->machine.kernel = receipts->kernel;
    receipts->machine.memory = &receipts->memory;
    for (size_t i = 0; i < settings->filter_count; i++)
        if (hash_filter(receipts, settings, i, err) < 0)
            return -1;
    struct fact_named *const filters[] = { &receipts->machine.filter,
                                           &receipts->machine.loopback_filter };
    for (size_t i = 0; i < 2 && i < settings->filter_count; i++)
        *filters[i] = (struct fact_named){ receipts->names[i], receipts->digests[i] };
    read_self_test(receipts, settings->state);
    return 0;
}

/* --- groups ----------------------------------------------------------------------------------- */

/* Records that the oldest segments are to be deleted; the next group deletes them. */
static void retire_old(struct receipts *receipts)
{
    uint64_t first;
    error err;
    if (receipts->trim_to > 0 || !ledger_retention(receipts->ledger, &first))
        return;
    receipts->trim_to = first;
    const struct event_field fields[] = { { "first_kept", NULL, (int64_t) first }, { 0 } };
    if (audit_write(receipts, "log.trimmed", fields, &err) == 0)
        return;
    receipts->trim_to = 0;
    log_event(RECEIPTS_NOT_TRIMMED, TEXT("cause", err.text));
}

/* Until the trouble is over nothing new is run. */
static void note_trouble(struct receipts *receipts, const error *why)
{
    receipts->trouble = *why;
    log_event(RECEIPTS_NOT_ON_DISK, TEXT("cause", why->text));
}

/* On a thread of libuv: the loop must not wait for the disk. */
static void sync_group(uv_work_t *work)
{
    struct receipts *receipts = work->data;
    receipts->work_failure = (error){ 0 };
    if (ledger_group_sync(&receipts->in_flight, &receipts->work_failure) == 0)
        ledger_drop_before(receipts->in_flight.folder, receipts->trim_to);
}

static void group_is_synced(uv_work_t *work, int status)
{
    struct receipts *receipts = work->data;
    error err = receipts->work_failure;
    (void) loop_enter(CAUSE_DISK, NULL);
    receipts->is_working = false;
    if (!receipts->in_flight.is_on_disk)
        ledger_distrust(receipts->ledger);
    bool has_ended = status == 0 && err.code == ERR_NONE &&
                     ledger_group_end(receipts->ledger, &receipts->in_flight, &err) == 0;
    if (has_ended)
        receipts->trouble = (error){ 0 };
    else if (err.code != ERR_BUSY) /* another writer has the lock: try later */
        note_trouble(receipts, &err);
    ledger_group_done(&receipts->in_flight);
    if (has_ended) {
        receipts->trim_to = 0;
        retire_old(receipts);
    }
    receipts_sync_soon(receipts);
}

static void on_group(uv_timer_t *timer)
{
    struct receipts *receipts = timer->data;
    error err;
    if (ledger_mend(receipts->ledger, &err) < 0 ||
        ledger_group_begin(receipts->ledger, &receipts->in_flight, &err) < 0) {
        if (err.code != ERR_BUSY) /* another writer has the lock: a little later */
            note_trouble(receipts, &err);
        receipts_sync_soon(receipts);
        return;
    }
    receipts->in_flight.lock_max_ms = CHECKPOINT_MAX_MS; /* a thread can wait */
    receipts->is_working = true;
    (void) uv_queue_work(timer->loop, &receipts->work, sync_group, group_is_synced);
}

void receipts_sync_soon(struct receipts *receipts)
{
    if (!ledger_is_dirty(receipts->ledger)) /* by another writer's checkpoint, or our own sync */
        receipts->trouble = (error){ 0 };
    if (receipts->is_durable && !receipts->is_working) /* there is no other group */
        retire_old(receipts);
    if ((ledger_is_dirty(receipts->ledger) || receipts->trim_to > 0) && !receipts->is_working &&
        !uv_is_active((const uv_handle_t *) &receipts->group) &&
        !uv_is_closing((const uv_handle_t *) &receipts->group))
        (void) uv_timer_start(&receipts->group, on_group,
                              receipts->trouble.code == ERR_NONE ? RECEIPTS_GROUP_MS : RETRY_MS, 0);
}

static void do_nothing(uv_work_t *work)
{
    (void) work;
}

static void thread_is_there(uv_work_t *work, int status)
{
    struct receipts *receipts = work->data;
    (void) status;
    receipts->is_working = false;
    receipts_sync_soon(receipts);
}

/* libuv starts its threads with the first work item; that must be now, since the daemon's filter
 * forbids it later. One thread is for the log and one for idempotency keys, the third for
 * disk_worker.h. */
static int start_thread(struct receipts *receipts, uv_loop_t *loop, error *err)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): there is no other thread yet */
    (void) setenv("UV_THREADPOOL_SIZE", "3", 1);
    int result = uv_queue_work(loop, &receipts->work, do_nothing, thread_is_there);
    if (result < 0)
        return fail(err, ERR_SYSTEM, "start the thread of the log: %s", uv_strerror(result));
    receipts->is_working = true;
    return 0;
}

/* --- opening and closing ---------------------------------------------------------------------- */

static int open_folder(const char *state, int *ret_folder, error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/log", state) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "the path of the state folder is too long");
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return fail_os(err, "make the folder of the log '%s'", path);
    *ret_folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    return *ret_folder < 0 ? fail_os(err, "open the folder of the log '%s'", path) : 0;
}

bool receipts_sync_each(const struct receipts *receipts)
{
    return receipts->is_durable;
}

/* Reads the log again: another daemon may have written its last receipts since. */
int receipts_recover(struct receipts *receipts, error *err)
{
    unsigned lost;
    struct merkle_head head;
    if (ledger_begin(receipts->ledger, &head, err) < 0)
        return -1;
    ledger_abandon(receipts->ledger);
    if (intents_recover(receipts->folder, receipts->ledger, &lost, err) < 0)
        return -1;
    if (lost > 0)
        log_event(RECEIPTS_RECOVERED, COUNT("lost", lost));
    return 0;
}

/* Beside the folder of the log, so that a copy of the folder does not contain it. */
static int read_secret(const char *state, struct opening_key *ret_secret, error *err)
{
    auto_fd folder = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? fail_os(err, "open '%s'", state)
                      : opening_secret_read(folder, ret_secret, err);
}

/* Repairs what a dead daemon left: a torn record, executions without an end. */
static int settle(struct receipts *receipts, error *err)
{
    uint64_t torn = ledger_truncate_tail(receipts->ledger);
    const struct event_field fields[] = { { "torn_bytes", NULL, (int64_t) torn }, { 0 } };
    if (torn > 0 && audit_write(receipts, "log.recovered", fields, err) < 0)
        return -1;
    if (torn > 0)
        log_event(RECEIPTS_RECOVERED, COUNT("torn_bytes", (int64_t) torn));
    if (receipts_recover(receipts, err) < 0)
        return -1;
    return intents_open(receipts->folder, receipts->ledger, &receipts->intents, err);
}

int receipts_open(uv_loop_t *loop, const struct receipts_settings *settings,
                  struct receipts **ret_receipts, error *err)
{
    struct receipts *receipts = calloc(1, sizeof *receipts);
    if (!receipts)
        return fail(err, ERR_SYSTEM, "no memory for receipts");
    receipts->folder = receipts->witness.file = -1;
    receipts->is_durable = settings->sync_each;
    receipts->group.data = receipts->work.data = receipts;
    struct ledger_settings log = { .sync_each = receipts->is_durable,
                                   .lock_max_ms = LOCK_MAX_MS,
                                   .keep_max = settings->keep_bytes,
                                   .witness = settings->witness ? witness_output_tell : NULL,
                                   .witness_context = &receipts->witness };
    (void) uv_timer_init(loop, &receipts->group);
    uv_unref((uv_handle_t *) &receipts->group);
    *ret_receipts = receipts;
    if (settings->witness && witness_output_open(&receipts->witness, settings->witness,
                                                 settings->notify_client, err) < 0)
        return -1;
    if (start_thread(receipts, loop, err) < 0 || learn_machine(receipts, settings, err) < 0 ||
        open_folder(settings->state, &receipts->folder, err) < 0 ||
        read_secret(settings->state, &receipts->secret, err) < 0 ||
        ledger_open(receipts->folder, &log, &receipts->ledger, err) < 0 ||
        witness_output_check(&receipts->witness, receipts->folder, receipts->ledger, err) < 0)
        return -1;
    return settle(receipts, err);
}

void receipts_leave(struct receipts *receipts)
{
    if (receipts)
        uv_close((uv_handle_t *) &receipts->group, NULL);
}

void receipts_close(struct receipts *receipts)
{
    if (!receipts)
        return;
    intents_close(receipts->intents);
    statement_memory_done(&receipts->memory);
    ledger_close(receipts->ledger);
    close_fd(&receipts->folder);
    close_fd(&receipts->witness.file);
    for (size_t i = 0; i < FILTERS_MAX; i++)
        free(receipts->names[i]);
    free(receipts);
}

/* --- its state -------------------------------------------------------------------------------- */

uint64_t receipts_free_bytes(const struct receipts *receipts)
{
    return ledger_free_bytes(receipts->ledger);
}

int receipts_have_room(struct receipts *receipts, error *err)
{
    if (receipts->trouble.code != ERR_NONE) {
        *err = receipts->trouble;
        err->code = ERR_UNAVAILABLE;
        return under(err, "no checkpoint covers the last records of the log of receipts yet, and "
                          "nothing new is run until one does");
    }
    if (ledger_probe(receipts->ledger, err) < 0)
        return under(err, "nothing new is run");
    if (intents_settle(receipts->intents, err) < 0) {
        err->code = ERR_UNAVAILABLE;
        return under(err, "receipts of executions that have ended cannot be written, and nothing "
                          "new is run until they are");
    }
    if (ledger_has_room(receipts->ledger))
        return 0;
    return fail(err, ERR_UNAVAILABLE,
                "the disk of the log of receipts is full: nothing new is run; make room there, or "
                "bound the log (log_keep)");
}

int receipts_cover(struct receipts *receipts, uint64_t *size, error *err)
{
    struct merkle_head head;
    if (*size == 0)
        *size = ledger_size(receipts->ledger);
    if (ledger_covered(receipts->ledger) >= *size)
        return 1;
    if (ledger_size(receipts->ledger) < *size) { /* another writer has added it */
        if (ledger_begin(receipts->ledger, &head, err) < 0)
            return under(err, "read the newest records of the log of receipts");
        ledger_abandon(receipts->ledger);
    }
    receipts_sync_soon(receipts); /* a record whose own sync has failed began no group */
    if (receipts->trouble.code == ERR_NONE)
        return 0;
    *err = receipts->trouble;
    err->code = ERR_UNAVAILABLE;
    return under(err, "no checkpoint covers the last records of the log of receipts yet");
}

bool receipts_are_held(const struct receipts *receipts)
{
    return ledger_is_held(receipts->ledger);
}

uint64_t receipts_last_size(struct receipts *receipts)
{
    return ledger_last_size(receipts->ledger);
}

struct ledger *receipts_ledger(struct receipts *receipts)
{
    return receipts->ledger;
}
