/* liveness.c - a timer, a job on a disk thread, and a message to the parent. */
#include "daemon/liveness.h"

#include "engine/store/disk_worker.h"

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static struct liveness {
    struct disk_job job;
    uv_timer_t timer;
    int file; /* made with O_TMPFILE; -1: the file system does not support that */
    int socket;
    bool is_open, is_working;
} liveness = { .file = -1 };

static void write_and_wait(void *user)
{
    const struct liveness *its = user;
    if (its->file >= 0 && pwrite(its->file, "alive", 5, 0) == 5)
        (void) fdatasync(its->file);
}

static void send_alive(void *user)
{
    static const char word[] = "alive";
    struct liveness *its = user;
    its->is_working = false;
    if (its->is_open)
        (void) !send(its->socket, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void on_timer(uv_timer_t *timer)
{
    if (liveness.is_working)
        return;
    liveness.is_working = true;
    disk_worker_do(timer->loop, &liveness.job);
}

void liveness_open(uv_loop_t *loop, const char *state, int socket)
{
    liveness.file = open(state, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    liveness.socket = socket;
    liveness.is_open = true;
    liveness.job = (struct disk_job){ write_and_wait, send_alive, &liveness, NULL };
    (void) uv_timer_init(loop, &liveness.timer);
    (void) uv_timer_start(&liveness.timer, on_timer, LIVENESS_EVERY_MS, LIVENESS_EVERY_MS);
    uv_unref((uv_handle_t *) &liveness.timer);
}

void liveness_close(void)
{
    if (!liveness.is_open)
        return;
    liveness.is_open = false;
    uv_close((uv_handle_t *) &liveness.timer, NULL);
}
