/* disk_worker.c - see disk_worker.h. */
#include "engine/store/disk_worker.h"

#include "engine/observe/loop_monitor.h"

#include <stdlib.h>
#include <unistd.h>

static struct disk_job *first, **end = &first; /* the first one runs */
static uv_work_t thread;

struct closing {
    struct disk_job job;
    int fd;
};

static void begin(uv_loop_t *loop);

static void work(uv_work_t *unused)
{
    (void) unused;
    first->work(first->user);
}

static void done(uv_work_t *worked, int status)
{
    struct disk_job *job = first;
    (void) status; /* jobs are never cancelled */
    (void) loop_enter(CAUSE_DISK, NULL);
    first = job->next;
    if (!first)
        end = &first;
    else
        begin(worked->loop);
    job->done(job->user);
}

static void begin(uv_loop_t *loop)
{
    (void) uv_queue_work(loop, &thread, work, done); /* fails only if `work` is NULL */
}

void disk_worker_do(uv_loop_t *loop, struct disk_job *job)
{
    job->next = NULL;
    *end = job;
    end = &job->next;
    if (first == job)
        begin(loop);
}

static void close_it(void *user)
{
    const struct closing *closing = user;
    (void) close(closing->fd);
}

void disk_worker_close(uv_loop_t *loop, int fd)
{
    struct closing *closing = fd < 0 ? NULL : calloc(1, sizeof *closing);
    if (!closing) {
        if (fd >= 0)
            (void) close(fd);
        return;
    }
    *closing = (struct closing){ .job = { close_it, free, closing, NULL }, .fd = fd };
    disk_worker_do(loop, &closing->job);
}
