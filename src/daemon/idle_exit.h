/* idle_exit.h - asks the parent to end the service when it was not used for some time: it has no
 * connection, no run and no session. Where another service waits for what one alone can have of a
 * state folder, a second is enough. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

struct idle_exit {
    unsigned seconds; /* without use; 0: never */
    bool (*is_used)(void);
    int64_t (*used_ms)(void); /* when a connection ended the last time, by now_ms(); 0: never */
    const struct idempotency *idempotency;
    int socket;
    int64_t since_ms;
    uv_timer_t timer;
    bool is_open;
};

/* The first five have been set; `socket` stays the caller's, until idle_exit_close(). */
void idle_exit_open(struct idle_exit *idle, uv_loop_t *loop);
void idle_exit_close(struct idle_exit *idle);
