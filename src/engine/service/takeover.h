/* takeover.h - a daemon that was started beside another one with the same state folder. Keys of
 * requests and the list of sessions belong to one at a time: until the other has ended, requests
 * with a key are refused, and what is begun meanwhile is noted later. */
#pragma once

#include <uv.h>

struct service;

struct takeover {
    struct service *service; /* borrowed */
    uv_timer_t timer;        /* runs while something is elsewhere */
};

void takeover_open(struct takeover *takeover, uv_loop_t *loop, struct service *service);
void takeover_close(struct takeover *takeover);
