/* idempotency_file.h - the file of idempotency.c: its lock, and its syncs. */
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

struct idempotency_file {
    int fd; /* -1: there is none */
    bool is_ours;
    uv_loop_t *loop; /* NULL: no syncs in groups */
    uv_timer_t timer;
    uv_work_t work;
    bool is_working, is_dirty, is_closing;
    int failure; /* errno of the last sync; while it is not 0, no new key is stored */
    int work_failure;

    /* Rewrites the whole file: after a failed sync the kernel may have dropped any page of it
     * (fsync(2)), and would report success for the next sync. */
    int (*rewrite)(void *context, error *err);
    void *context;
};

int idempotency_file_open(struct idempotency_file *file, const char *state, error *err);
void idempotency_file_leave(struct idempotency_file *file);
void idempotency_file_close(struct idempotency_file *file);

enum { FILE_IS_ELSEWHERE = 1 };
int idempotency_file_lock(struct idempotency_file *file);
void idempotency_file_unlock(struct idempotency_file *file);
bool idempotency_file_is_awaited(const struct idempotency_file *file);

int idempotency_file_write(struct idempotency_file *file, const void *bytes, size_t size, off_t at,
                           error *err);
int idempotency_file_sync(struct idempotency_file *file, error *err); /* waits for the disk */
void idempotency_file_sync_soon(struct idempotency_file *file);
