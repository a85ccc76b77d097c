/* io_uring.h - keeps the event loop from using io_uring(7). */
#pragma once

#include "base/error.h"

/* Makes io_uring_setup(2) fail with ENOSYS in this process and its children. Call it before
 * uv_loop_init(): libuv 1.45 and later use io_uring for changes of epoll sets if they can (since
 * 1.50 without a setting against it), and abort when io_uring_enter(2) is refused later, as it is
 * by the filters of our programs. Also sets PR_SET_NO_NEW_PRIVS. */
int refuse_io_uring(error *err);
