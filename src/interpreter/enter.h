/* enter.h - moves a forked interpreter into its sandbox. */
#pragma once

#include "base/error.h"
#include "contract/build.h"
#include "contract/zygote.h"

#include <linux/filter.h>

struct filter {
    unsigned short length; /* instructions */
    struct sock_filter code[BUILD_FILTER_MAX];
};

/* Reads a seccomp filter from a memfd. Fails ERR_PROTOCOL if it is empty, odd or too long. */
int filter_read(int memory, struct filter *filter, error *err);

/* Takes all steps with the descriptors of a ZYGOTE_FORK, then sends init AGENT_INTERPRETER_READY
 * with the listener of the filter. If a step fails it tells init which, and exits. Gives
 * *ret_control, the socket to init; 0, 1 and 2 are the program's; everything else is closed. */
void enter_sandbox(const struct zygote_fork *order, const int *fds, const struct filter *filter,
                   int *ret_control);
