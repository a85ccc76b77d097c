/* signals.h - ignores signals that a service does not use, and that would end it by default. */
#pragma once

#include <signal.h>
#include <stddef.h>

static inline void signal_passes(int number)
{
    (void) number;
}

/* With a handler, not SIG_IGN, which child programs would inherit. */
static inline void signals_outlive(void)
{
    static const int numbers[] = { SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE };
    const struct sigaction action = { .sa_handler = signal_passes, .sa_flags = SA_RESTART };
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        (void) sigaction(numbers[i], &action, NULL);
}
