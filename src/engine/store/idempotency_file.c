/* idempotency_file.c - see idempotency_file.h. Syncs run off the event loop. */
#include "engine/store/idempotency_file.h"

#include "base/cleanup.h"
#include "engine/observe/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

enum { GROUP_MS = 50, AGAIN_MS = 1000, WAITING_AT = 0x7fffffff };

int idempotency_file_open(struct idempotency_file *file, const char *state, error *err)
{
    char path[4096];
    if (snprintf(path, sizeof path, "%s/replays", state) >= (int) sizeof path)
        return fail(err, ERR_BAD_REQUEST, "the path of the state folder is too long");
    file->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file->fd < 0)
        return fail_os(err, "open '%s', the file of Idempotency-Keys", path);
    if (!file->loop)
        return 0;
    file->timer.data = file->work.data = file;
    (void) uv_timer_init(file->loop, &file->timer);
    uv_unref((uv_handle_t *) &file->timer);
    return 0;
}

void idempotency_file_leave(struct idempotency_file *file)
{
    if (file->loop && !file->is_closing && file->fd >= 0)
        uv_close((uv_handle_t *) &file->timer, NULL);
    file->is_closing = true;
}

void idempotency_file_close(struct idempotency_file *file)
{
    error err;
    if (file->fd >= 0 && file->is_ours && file->is_dirty)
        (void) idempotency_file_sync(file, &err);
    close_fd(&file->fd);
}

/* flock() does not tell its owner that others wait, so a waiting daemon takes another kind of lock,
 * on a byte after the end of the file. `command` is F_OFD_SETLK or F_OFD_GETLK; returns the type of
 * lock that was found. */
static int lock_of_waiting(const struct idempotency_file *file, int command, int type)
{
    struct flock lock = { .l_type = (short) type, .l_start = WAITING_AT, .l_len = 1 };
    return fcntl(file->fd, command, &lock) < 0 ? F_UNLCK : lock.l_type;
}

int idempotency_file_lock(struct idempotency_file *file)
{
    bool is_taken = file->is_ours || flock(file->fd, LOCK_EX | LOCK_NB) == 0;
    (void) lock_of_waiting(file, F_OFD_SETLK, is_taken ? F_UNLCK : F_RDLCK);
    file->is_ours = is_taken;
    return is_taken ? 0 : FILE_IS_ELSEWHERE;
}

bool idempotency_file_is_awaited(const struct idempotency_file *file)
{
    return file->is_ours && lock_of_waiting(file, F_OFD_GETLK, F_WRLCK) != F_UNLCK;
}

void idempotency_file_unlock(struct idempotency_file *file)
{
    file->is_ours = false;
    (void) flock(file->fd, LOCK_UN);
}

int idempotency_file_write(struct idempotency_file *file, const void *bytes, size_t size, off_t at,
                           error *err)
{
    errno = ENOSPC; /* a short write gives no errno */
    if (file->fd >= 0 && pwrite(file->fd, bytes, size, at) != (ssize_t) size)
        return fail_os(err, "write an Idempotency-Key to its file");
    return 0;
}

int idempotency_file_sync(struct idempotency_file *file, error *err)
{
    return file->fd < 0 || fdatasync(file->fd) == 0
               ? 0
               : fail_os(err, "sync the file of Idempotency-Keys");
}

static void sync_beside(uv_work_t *work)
{
    struct idempotency_file *file = work->data;
    file->work_failure = fdatasync(file->fd) == 0 ? 0 : errno;
}

static void begin_timer(struct idempotency_file *file);

static void is_synced(uv_work_t *work, int status)
{
    struct idempotency_file *file = work->data;
    bool had_failed = file->failure != 0;
    file->is_working = false;
    file->failure = status < 0 ? EAGAIN : file->work_failure;
    if (file->failure != 0 && !had_failed)
        log_event(IDEMPOTENCY_NOT_ON_DISK, TEXT("cause", strerrordesc_np(file->failure)));
    else if (file->failure == 0 && had_failed)
        log_event(IDEMPOTENCY_ON_DISK, TEXT("cause", "the disk answers again"));
    begin_timer(file);
}

static void on_timer(uv_timer_t *timer)
{
    struct idempotency_file *file = timer->data;
    error err;
    if (file->failure != 0 && file->rewrite(file->context, &err) < 0) {
        begin_timer(file);
        return;
    }
    file->is_dirty = false;
    file->is_working = uv_queue_work(file->loop, &file->work, sync_beside, is_synced) == 0;
}

static void begin_timer(struct idempotency_file *file)
{
    if ((file->is_dirty || file->failure != 0) && !file->is_working && !file->is_closing &&
        !uv_is_active((const uv_handle_t *) &file->timer))
        (void) uv_timer_start(&file->timer, on_timer, file->failure != 0 ? AGAIN_MS : GROUP_MS, 0);
}

void idempotency_file_sync_soon(struct idempotency_file *file)
{
    file->is_dirty = true;
    if (file->fd >= 0 && file->loop)
        begin_timer(file);
}
