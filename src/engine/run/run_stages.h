/* run_stages.h - what only some runs go through, before they are queued and after their code has
 * ended. These parts lie above this folder: engine/service/run_stages.c names them. A run that
 * neither its policy nor its request asks more of calls none of them. */
#pragma once

#include "base/bytes.h"
#include "base/error.h"

#include <stdbool.h>

struct run;
struct run_request;

struct run_stages {
    /* The look at the code; `done` is called once, later or at once, unless it is abandoned. */
    void (*check)(struct run *run, const struct run_request *request, bool is_cell,
                  void (*done)(struct run *run));
    void (*abandon_check)(struct run *run);

    /* A person's approval: run_ask(), run_ask_checked(). */
    int (*ask)(struct run *run, const struct run_request *request, error *err);
    bool (*ask_checked)(struct run *run, const struct run_request *request);

    /* The comparison of its output; run->output_check is there from the first to the last. */
    int (*prepare_output)(struct run *run, const struct run_request *request, error *err);
    void (*compare_output)(struct run *run, void (*done)(struct run *run));
    void (*close_output)(struct run *run); /* what is not known by now is an error */
    void (*write_output)(const struct run *run, struct bytes *out);
    void (*free_output)(struct run *run);
};
