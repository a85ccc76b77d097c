/* run_environment.h - the environment of a program, for run_plan.c. */
#pragma once

#include "engine/run/run_plan.h"

enum { VARIABLES_MAX = AGENT_ARGUMENTS_MAX };

struct environment {
    size_t count;
    struct request_variable list[VARIABLES_MAX];
};

/* Fails  ERR_TOO_LARGE  more than VARIABLES_MAX names. */
int environment_gather(struct environment *environment, const struct run_spec *plan,
                       const struct run_request *request, error *err);

/* NAME=value, each ended by NUL. */
void environment_write(const struct environment *environment, struct bytes *out);
