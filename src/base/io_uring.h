/* io_uring.h - no ring for the event loop. */
#pragma once

#include "base/error.h"

/* From here on io_uring_setup(2) fails with ENOSYS in this process and what it starts. Called
 * before uv_loop_init(): libuv 1.45 and later change epoll sets by a ring if they get one
 * (since 1.50 no setting keeps them from it), and end the process when io_uring_enter(2) is refused
 * later, as the filters of our programs do. Takes new privileges away (PR_SET_NO_NEW_PRIVS). */
int refuse_io_uring(error *err);
