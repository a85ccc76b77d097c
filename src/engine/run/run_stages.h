/* run_stages.h - stages that only some runs have, before they are queued and after their code has
 * ended. Their code is above this folder: engine/service/run_stages.c fills in the table. Runs
 * whose policy and request need no stages call none. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>

struct run;
struct run_request;

struct run_stages {
    /* Checks the code; `done` is called once, later or at once, unless the check is abandoned. */
    void (*check)(struct run *run, const struct run_request *request, bool is_cell,
                  void (*done)(struct run *run));
    void (*abandon_check)(struct run *run);

    /* A person's approval: run_ask(), run_ask_checked(). */
    int (*ask)(struct run *run, const struct run_request *request, error *err);
    bool (*ask_checked)(struct run *run, const struct run_request *request);

    /* Compares the output; run->output_check exists from the first call to the last. */
    int (*prepare_output)(struct run *run, const struct run_request *request, error *err);
    void (*compare_output)(struct run *run, void (*done)(struct run *run));
    void (*close_output)(struct run *run); /* a check that has not ended is an error */
    void (*write_output)(const struct run *run, struct bytes *out);
    void (*free_output)(struct run *run);
};
