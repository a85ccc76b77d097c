/* idle_exit.h - asks the parent to end a service that has had no connection, run or session for
 * some time. If another service waits for the lock of the same state folder, one second is
 * enough. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct idle_exit {
    unsigned seconds; /* how long it must be unused; 0: never ends */
    bool (*is_used)(void);
    int64_t (*used_ms)(void); /* when a connection last ended, by now_ms(); 0: never */
    const struct idempotency *idempotency;
    int socket;
    int64_t since_ms;
    uv_timer_t timer;
    bool is_open;
};

/* The caller has set the first five members. `socket` remains open until idle_exit_close(). */
void idle_exit_open(struct idle_exit *idle, uv_loop_t *loop);
void idle_exit_close(struct idle_exit *idle);
