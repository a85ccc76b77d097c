/* approval_wait.h - asks the person at the terminal for a decision on the run that waits for it. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stdbool.h>

/* A run or a cell that may have to wait for a person. */
struct held {
    glb_client *client;
    glb_outcome **outcome;
    bool is_for_programs;            /* --json: asks no question at the terminal */
    int32_t (*again)(void *context); /* sends the same request again, and replaces the outcome */
    void *context;
};

enum { DECISION_CAME, DECISION_EXPIRED };

/* Asks the person at the terminal, then prints on stderr who else can decide and how, and waits for
 * the decision; then sends the request again. If the daemon is started again meanwhile, it waits
 * for that. Without need for a decision, or without a daemon, nothing is changed. Returns
 * DECISION_CAME     the outcome says which DECISION_EXPIRED  no decision came in time Fails
 * GLB_E_CANCELLED and as the API does: the request waits on, and can be decided later */
int decision_await(const struct held *held, error *err);

/* Prints a line on stderr: the user waits no longer, but the request does. */
void decision_tell_given_up(const glb_outcome *outcome, const char *what);

/* Prints a line on stderr if it did not run, since it waits or was denied. False: it ran. */
bool decision_tell(const glb_outcome *outcome);
