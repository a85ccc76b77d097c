/* approval_wait.h - asks the person at the terminal, when a run of its own waits for a decision. */
#pragma once

#include "base/error.h"

#include <glovebox.h>

#include <stdbool.h>

/* A run or a cell that may have to wait for a person. */
struct held {
    glb_client *client;
    glb_outcome **outcome;
    bool is_for_programs;            /* --json: no question is asked at the terminal */
    int32_t (*again)(void *context); /* sends the same once more, and replaces the outcome */
    void *context;
};

enum { DECISION_CAME, DECISION_EXPIRED };

/* Asks the person at the terminal, then says on stderr who else can decide and how, and waits until
 * it is decided; what was decided on is sent again. A daemon that is started again meanwhile is
 * waited for. What needs no decision, and what has no daemon to wait for, goes through as it is.
 * Returns  DECISION_CAME     the outcome tells which
 *          DECISION_EXPIRED  no decision came in time
 * Fails    GLB_E_CANCELLED and as the API does: it waits on, and can be decided on later */
int decision_await(const struct held *held, error *err);

/* One line on stderr for a user who waits no longer: the request does. */
void decision_tell_given_up(const glb_outcome *outcome, const char *what);

/* One line on stderr for what did not run: it waits, or was denied. False if it ran. */
bool decision_tell(const glb_outcome *outcome);
